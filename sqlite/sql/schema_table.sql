-- The table of applied migrations, made in the same transaction as the first of them.
CREATE TABLE IF NOT EXISTS pacht_schema_version (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
