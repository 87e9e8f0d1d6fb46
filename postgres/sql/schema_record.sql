-- Records that a migration was applied.
-- $1 version, $2 name, $3 checksum
INSERT INTO pacht.schema_version (version, name, checksum, applied_at)
VALUES ($1::integer, $2::text, $3::text, statement_timestamp());
