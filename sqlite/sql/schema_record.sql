-- Records one migration, in its own transaction.
-- ?1 version, ?2 name, ?3 checksum
INSERT INTO pacht_schema_version (version, name, checksum, applied_at)
VALUES (?1, ?2, ?3, CAST(round(unixepoch('subsec') * 1000) AS INTEGER));
