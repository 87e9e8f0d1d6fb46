-- Takes one job by its id: a due Pending one, or an expired lease, which is closed and taken
-- in this statement if its policy is retry, both caps have room and no cancel is requested
-- (R1). No row is no error.
-- $1 owner, $2 job, $3 the store's number and $4 the claim's: one that its owner has made void
-- takes nothing (R4)
WITH was AS MATERIALIZED (
    SELECT
        l.job_id,
        l.status,
        l.token,
        l.attempt,
        l.lease_owner,
        l.claimed_at
    FROM pacht.leases AS l
    WHERE l.job_id = $2::bigint
        AND (
            (l.status = 'Pending' AND l.run_at <= statement_timestamp())
            OR (
                l.status = 'Processing'
                AND l.lease_until <= statement_timestamp()
                AND l.crash_policy = 'retry'
                AND l.attempt < l.max_attempts
                AND l.crashes + 1 < l.max_crashes
                AND NOT l.cancel_requested
            )
        )
        AND NOT EXISTS (SELECT 1 FROM pacht.voided AS v WHERE v.owner = $1::text AND v.store = $3::bigint AND v.claim >= $4::bigint)
    FOR UPDATE SKIP LOCKED
),
claimed AS (
    UPDATE pacht.leases AS l
    SET status = 'Processing',
        lease_owner = $1::text,
        claimed_at = statement_timestamp(),
        lease_until = statement_timestamp() + l.ttl_ms * interval '1 millisecond',
        attempt = l.attempt + 1,
        token = l.token + 1,
        rev = l.rev + 1,
        crashes = l.crashes + CASE WHEN was.status = 'Processing' THEN 1 ELSE 0 END
    FROM was
    WHERE l.job_id = was.job_id
    RETURNING
        l.job_id,
        l.kind,
        l.queue,
        l.priority,
        l.status,
        l.attempt,
        l.max_attempts,
        l.crashes,
        l.max_crashes,
        l.token,
        l.ttl_ms,
        l.crash_policy,
        l.run_at,
        l.lease_owner,
        l.claimed_at,
        l.lease_until,
        l.cancel_requested
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, outcome, next_status)
    SELECT was.job_id, was.token, was.attempt, was.lease_owner, was.claimed_at, statement_timestamp(), 'Expired', 'Processing'
    FROM was
    WHERE was.status = 'Processing'
)
SELECT
    l.job_id,
    l.kind,
    l.queue,
    l.priority,
    j.args,
    j.metadata,
    l.status,
    l.attempt,
    l.max_attempts,
    l.crashes,
    l.max_crashes,
    l.token,
    l.ttl_ms,
    l.crash_policy,
    j.created_at,
    l.run_at,
    coalesce(l.lease_owner, ''),
    l.claimed_at,
    l.lease_until,
    l.cancel_requested,
    NULL::timestamptz
FROM claimed AS l
LEFT JOIN LATERAL (
    SELECT j.created_at, j.args, j.metadata
    FROM pacht.jobs AS j
    WHERE j.job_id = l.job_id
    LIMIT 1
) AS j ON true;
