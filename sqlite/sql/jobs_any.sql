-- A page of jobs of any status, or of Completed ones, without args: along the ids, newest first.
-- ?1 status or '', ?2 kind or '', ?3 queue or '', ?4 before, ?5 limit
SELECT
    j.job_id, j.kind, j.queue, j.priority, NULL AS args, NULL AS metadata,
    coalesce(l.status, a.next_status, '') AS status,
    coalesce(l.attempt, a.attempt, 0) AS attempt,
    coalesce(l.max_attempts, j.max_attempts) AS max_attempts,
    coalesce(l.crashes, 0) AS crashes,
    j.max_crashes,
    coalesce(l.token, a.token, 0) AS token,
    j.ttl_ms, j.crash_policy, j.created_at, nullif(l.run_at, 253402300799999) AS run_at,
    l.lease_owner, l.claimed_at, l.lease_until, coalesce(l.cancel_requested, 0) AS cancel_requested,
    CASE WHEN l.job_id IS NULL THEN a.ended_at END AS finished_at
FROM pacht_jobs AS j
LEFT JOIN pacht_leases AS l ON l.job_id = j.job_id
LEFT JOIN pacht_attempts AS a ON a.job_id = j.job_id
    AND a.token = (SELECT max(b.token) FROM pacht_attempts AS b WHERE b.job_id = j.job_id)
WHERE j.job_id < ?4
    AND (?1 = '' OR coalesce(l.status, a.next_status, '') = ?1)
    AND (?2 = '' OR j.kind = ?2)
    AND (?3 = '' OR j.queue = ?3)
ORDER BY j.job_id DESC
LIMIT ?5;
