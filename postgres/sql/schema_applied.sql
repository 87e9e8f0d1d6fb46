-- The migrations that were applied, in order.
SELECT v.version, v.name, v.checksum, v.applied_at
FROM pacht.schema_version AS v
ORDER BY v.version;
