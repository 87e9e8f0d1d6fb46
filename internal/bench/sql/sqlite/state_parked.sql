-- Gives the jobs made after a job parked leases; state_parked_attempts.sql writes why.
INSERT INTO pacht_leases (job_id, token, run_at, attempt, max_attempts, ttl_ms, max_crashes, priority, status, crash_policy, queue, kind)
SELECT j.job_id, 1, 253402300799999, 1, j.max_attempts, j.ttl_ms, j.max_crashes, j.priority, 'Stuck', j.crash_policy, j.queue, j.kind
FROM pacht_jobs AS j
WHERE j.job_id > ?1
    AND j.queue = 'bench';
