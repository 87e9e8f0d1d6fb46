-- Says whether the schema exists, and its list of migrations.
-- $1 schema
SELECT
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_namespace AS n
        WHERE n.nspname = $1::text
    ),
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_class AS c
        INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1::text
            AND c.relname = 'schema_version'
    );
