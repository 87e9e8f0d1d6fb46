-- Deletes expired idempotency keys in a slice of the table, by its blocks: an index on
-- expires_at would be paid for by every enqueue with a key. Never one whose job is unfinished
-- (R11). Answers how many, and how many blocks there are.
-- $1 from this block, $2 how many blocks, $3 expired at least this long ago, in microseconds,
-- $4 limit, $5 the table's name
WITH due AS MATERIALIZED (
    SELECT k.ctid AS place
    FROM pacht.keys AS k
    WHERE k.ctid >= ('(' || $1::bigint || ',0)')::tid
        AND k.ctid < ('(' || $1::bigint + $2::bigint || ',0)')::tid
        AND k.expires_at <= statement_timestamp() - $3::bigint * interval '1 microsecond'
        AND (SELECT true FROM pacht.leases AS l WHERE l.job_id = k.job_id) IS NOT TRUE
    LIMIT $4::bigint
    FOR UPDATE OF k SKIP LOCKED
),
gone AS (
    DELETE FROM pacht.keys AS k
    WHERE k.ctid = ANY (ARRAY(SELECT d.place FROM due AS d))
    RETURNING k.job_id
)
SELECT
    (SELECT count(*) FROM gone),
    pg_relation_size($5::text::regclass) / current_setting('block_size')::bigint;
