-- Deletes idempotency keys whose life is over, never one whose job is unfinished (R11).
-- $1 limit
WITH due AS MATERIALIZED (
    SELECT k.scope, k.key
    FROM pacht.keys AS k
    WHERE k.expires_at <= statement_timestamp()
        AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = k.job_id)
    LIMIT $1::bigint
    FOR UPDATE OF k SKIP LOCKED
)
DELETE FROM pacht.keys AS k
USING due AS d
WHERE k.scope = d.scope
    AND k.key = d.key;
