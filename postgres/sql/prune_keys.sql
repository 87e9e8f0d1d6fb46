-- Deletes idempotency keys whose life is over, never one whose job is unfinished (R11).
-- $1 limit
WITH due AS MATERIALIZED (
    SELECT k.ctid AS place
    FROM pacht.keys AS k
    WHERE k.expires_at <= statement_timestamp()
        AND (SELECT true FROM pacht.leases AS l WHERE l.job_id = k.job_id) IS NOT TRUE
    LIMIT $1::bigint
    FOR UPDATE OF k SKIP LOCKED
)
DELETE FROM pacht.keys AS k
WHERE k.ctid = ANY (ARRAY(SELECT d.place FROM due AS d));
