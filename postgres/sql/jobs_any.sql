-- Lists jobs without args, newest first: any, or completed ones. Reads the jobs backwards
-- until the page is full, so a kind or queue that is rare among them is slow.
-- $1 status ('' = any), $2 kind, $3 queue ('' = any), $4 before this job (0 = from the
-- newest), $5 limit
SELECT
    j.job_id,
    j.kind,
    j.queue,
    j.priority,
    '',
    '',
    coalesce(l.status, a.next_status, ''),
    coalesce(l.attempt, a.attempt, 0),
    coalesce(l.max_attempts, greatest(a.attempt, j.max_attempts)),
    coalesce(l.crashes, 0),
    j.max_crashes,
    coalesce(l.token, a.token, 0),
    j.ttl_ms,
    j.crash_policy,
    j.created_at,
    CASE WHEN isfinite(l.run_at) THEN l.run_at END,
    coalesce(l.lease_owner, ''),
    l.claimed_at,
    l.lease_until,
    coalesce(l.cancel_requested, false),
    CASE WHEN l.job_id IS NULL THEN a.ended_at END
FROM pacht.jobs AS j
LEFT JOIN LATERAL (
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
    WHERE l.job_id = j.job_id
    LIMIT 1
) AS l ON true
LEFT JOIN LATERAL (
    SELECT a.token, a.attempt, a.ended_at, a.next_status
    FROM pacht.attempts AS a
    WHERE a.job_id = j.job_id
    ORDER BY a.token DESC
    LIMIT 1
) AS a ON true
WHERE ($1::text = '' OR (l.job_id IS NULL AND a.next_status = $1::text))
    AND ($2::text = '' OR j.kind = $2::text)
    AND ($3::text = '' OR j.queue = $3::text)
    AND ($4::bigint = 0 OR j.job_id < $4::bigint)
ORDER BY j.job_id DESC
LIMIT $5::bigint;
