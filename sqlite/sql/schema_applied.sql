-- The applied migrations, oldest first.
SELECT version, name, checksum, applied_at
FROM pacht_schema_version
ORDER BY version;
