-- Takes a lease from its holder, fenced by the token (R3): Processing to Pending, attempt
-- given back; Cancelled if a cancel is requested. Nothing if the token is not current, or
-- somebody else holds the row locked.
-- $1 job, $2 token, $3 actor, $4 reason
WITH held AS MATERIALIZED (
    SELECT
        l.job_id,
        l.token,
        l.attempt,
        l.run_at,
        l.lease_owner,
        l.claimed_at,
        l.lease_until,
        CASE WHEN l.cancel_requested THEN 'Cancelled' ELSE 'Pending' END AS next_status
    FROM pacht.leases AS l
    WHERE l.job_id = $1::bigint
        AND l.token = $2::bigint
        AND l.status = 'Processing'
    FOR UPDATE SKIP LOCKED
),
finished AS (
    DELETE FROM pacht.leases AS l
    WHERE l.job_id = ANY (ARRAY(SELECT h.job_id FROM held AS h WHERE h.next_status = 'Cancelled'))
),
put_back AS (
    UPDATE pacht.leases AS l
    SET status = 'Pending',
        attempt = l.attempt - 1,
        lease_owner = NULL,
        claimed_at = NULL,
        lease_until = NULL,
        rev = l.rev + 1
    WHERE l.job_id = ANY (ARRAY(SELECT h.job_id FROM held AS h WHERE h.next_status = 'Pending'))
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status, next_run_at)
    SELECT
        h.job_id,
        h.token,
        h.attempt,
        h.lease_owner,
        h.claimed_at,
        statement_timestamp(),
        h.lease_until <= statement_timestamp(),
        'Released',
        h.next_status,
        CASE WHEN h.next_status = 'Pending' THEN h.run_at END
    FROM held AS h
),
noted AS (
    INSERT INTO pacht.audit (at, actor, act, job_id, reason)
    SELECT statement_timestamp(), $3::text, 'release', h.job_id, $4::text
    FROM held AS h
)
SELECT h.next_status
FROM held AS h;
