-- Gives a Dead or Cancelled job a lease again, due now: token and attempt go on from its last
-- ledger row, so the fence never goes back (R2). A Completed job never goes back.
-- ?1 job, ?2 now
INSERT INTO pacht_leases (
    job_id, token, run_at, attempt, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind)
SELECT
    j.job_id, a.token, ?2, a.counted, a.counted + j.max_attempts, j.ttl_ms, j.max_crashes,
    j.priority, j.crash_policy, j.queue, j.kind
FROM pacht_jobs AS j
JOIN (
    SELECT
        b.job_id, b.token, b.next_status,
        b.attempt - CASE WHEN b.outcome IN ('Released', 'Snoozed') THEN 1 ELSE 0 END AS counted  -- given back (R5)
    FROM pacht_attempts AS b
    WHERE b.job_id = ?1
    ORDER BY b.token DESC
    LIMIT 1) AS a ON a.job_id = j.job_id
WHERE j.job_id = ?1
    AND a.next_status IN ('Dead', 'Cancelled')
    AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = j.job_id)
RETURNING job_id;
