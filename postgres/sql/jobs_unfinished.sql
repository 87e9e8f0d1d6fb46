-- Lists jobs without args, newest first: unfinished ones, read from the leases, so that the
-- history costs nothing.
-- $1 status ('' = any unfinished), $2 kind, $3 queue, $4 owner ('' = any), $5 only expired,
-- $6 before this job (0 = from the newest), $7 limit
SELECT
    j.job_id,
    j.kind,
    j.queue,
    j.priority,
    '',
    '',
    l.status,
    l.attempt,
    l.max_attempts,
    l.crashes,
    j.max_crashes,
    l.token,
    j.ttl_ms,
    j.crash_policy,
    j.created_at,
    CASE WHEN isfinite(l.run_at) THEN l.run_at END,
    coalesce(l.lease_owner, ''),
    l.claimed_at,
    l.lease_until,
    l.cancel_requested,
    NULL::timestamptz
FROM (
    SELECT
        l.job_id,
        l.status,
        l.attempt,
        l.max_attempts,
        l.crashes,
        l.token,
        l.run_at,
        l.lease_owner,
        l.claimed_at,
        l.lease_until,
        l.cancel_requested
    FROM pacht.leases AS l
    WHERE ($1::text = '' OR l.status = $1::text)
        AND ($2::text = '' OR l.kind = $2::text)
        AND ($3::text = '' OR l.queue = $3::text)
        AND ($4::text = '' OR l.lease_owner = $4::text)
        AND (NOT $5::boolean OR (l.status = 'Processing' AND l.lease_until <= statement_timestamp()))
        AND ($6::bigint = 0 OR l.job_id < $6::bigint)
    ORDER BY l.job_id DESC
    LIMIT $7::bigint
) AS l
CROSS JOIN LATERAL (
    SELECT j.job_id, j.kind, j.queue, j.priority, j.max_crashes, j.ttl_ms, j.crash_policy, j.created_at
    FROM pacht.jobs AS j
    WHERE j.job_id = l.job_id
    LIMIT 1
) AS j
ORDER BY j.job_id DESC;
