-- A page of Dead or Cancelled jobs, without args, whatever the history: from the partial index.
-- A row that was retried since has a lease or a later token, and is left out.
-- ?1 status, ?2 kind or '', ?3 queue or '', ?4 before, ?5 limit
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
FROM pacht_attempts AS a INDEXED BY pacht_attempts_ended_badly
CROSS JOIN pacht_jobs AS j ON j.job_id = a.job_id
LEFT JOIN pacht_leases AS l ON l.job_id = a.job_id
WHERE a.next_status = ?1
    AND a.next_status IN ('Dead', 'Cancelled')
    AND a.job_id < ?4
    AND l.job_id IS NULL
    AND NOT EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
    AND (?2 = '' OR j.kind = ?2)
    AND (?3 = '' OR j.queue = ?3)
ORDER BY a.job_id DESC
LIMIT ?5;
