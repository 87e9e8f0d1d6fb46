-- Whether a schema has a table, view or type named payment_jobs, whoever made it.
SELECT EXISTS (
    SELECT 1
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = 'payment_jobs'
        AND n.nspname = $1
);
