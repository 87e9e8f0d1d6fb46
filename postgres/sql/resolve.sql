-- Takes and closes a vacant or parked lease, fenced by the token it had (R2, R3): of two that
-- try, one wins. Nothing if the token is not current, the lease is held, or somebody else
-- holds the row locked.
-- $1 job, $2 token, $3 Completed or Dead, $4 error, $5 output, $6 actor, $7 reason
WITH found AS MATERIALIZED (
    SELECT l.job_id, l.token, l.attempt
    FROM pacht.leases AS l
    WHERE l.job_id = $1::bigint
        AND l.token = $2::bigint
        AND l.status IN ('Pending', 'Stuck')
    FOR UPDATE SKIP LOCKED
),
finished AS (
    DELETE FROM pacht.leases AS l
    WHERE l.job_id = ANY (ARRAY(SELECT f.job_id FROM found AS f))
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, outcome, next_status, error, output)
    SELECT
        f.job_id,
        f.token + 1,
        f.attempt,
        $6::text,
        statement_timestamp(),
        statement_timestamp(),
        'Resolved',
        $3::text,
        nullif($4::text, ''),
        nullif($5::text, '')::json
    FROM found AS f
),
noted AS (
    INSERT INTO pacht.audit (at, actor, act, job_id, reason)
    SELECT statement_timestamp(), $6::text, 'resolve', f.job_id, $7::text
    FROM found AS f
)
SELECT $3::text
FROM found AS f;
