-- The bytes of a table with its indexes and partitions; $1 is its name with its schema.
SELECT pg_total_relation_size($1::text::regclass) + coalesce((
    SELECT sum(pg_total_relation_size(t.relid))
    FROM pg_partition_tree($1::text::regclass) AS t
    WHERE t.relid <> $1::text::regclass
), 0)::bigint;
