-- What one owner holds now: what to ask after a claim whose answer was lost (R4).
-- $1 owner
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
FROM pacht.leases AS l
LEFT JOIN LATERAL (
    SELECT j.created_at, j.args, j.metadata
    FROM pacht.jobs AS j
    WHERE j.job_id = l.job_id
    LIMIT 1
) AS j ON true
WHERE l.lease_owner = $1::text
    AND l.status = 'Processing'
ORDER BY l.job_id;
