-- One job: its facts, its status, its lease.
-- $1 job
SELECT
    j.job_id,
    j.kind,
    j.queue,
    j.priority,
    j.args,
    j.metadata,
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
LEFT JOIN pacht.leases AS l ON l.job_id = j.job_id
LEFT JOIN LATERAL (
    SELECT a.token, a.attempt, a.ended_at, a.next_status
    FROM pacht.attempts AS a
    WHERE a.job_id = j.job_id
    ORDER BY a.token DESC
    LIMIT 1
) AS a ON true
WHERE j.job_id = $1::bigint;
