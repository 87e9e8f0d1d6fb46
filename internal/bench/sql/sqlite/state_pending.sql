-- Gives the jobs made after a job vacant leases.
INSERT INTO pacht_leases (job_id, run_at, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind)
SELECT j.job_id, j.run_at, j.max_attempts, j.ttl_ms, j.max_crashes, j.priority, j.crash_policy, j.queue, j.kind
FROM pacht_jobs AS j
WHERE j.job_id > ?1
    AND j.queue = 'bench';
