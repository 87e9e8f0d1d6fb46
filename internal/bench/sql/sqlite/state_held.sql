-- Gives the jobs made after a job leases that an owner holds for a day.
INSERT INTO pacht_leases (job_id, token, run_at, claimed_at, lease_until, attempt, max_attempts, ttl_ms, max_crashes, priority, status, crash_policy, queue, kind, lease_owner)
SELECT
    j.job_id,
    1,
    j.run_at,
    CAST(unixepoch('subsec') * 1000 AS INTEGER),
    CAST(unixepoch('subsec') * 1000 AS INTEGER) + 86400000,
    1,
    j.max_attempts,
    j.ttl_ms,
    j.max_crashes,
    j.priority,
    'Processing',
    j.crash_policy,
    j.queue,
    j.kind,
    'bench-held'
FROM pacht_jobs AS j
WHERE j.job_id > ?1
    AND j.queue = 'bench';
