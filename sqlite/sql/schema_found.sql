-- Whether the table of applied migrations is there.
SELECT count(*)
FROM sqlite_schema
WHERE type = 'table'
    AND name = 'pacht_schema_version';
