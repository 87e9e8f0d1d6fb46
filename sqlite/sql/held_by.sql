-- What an owner holds now, with args. Reads the leases from end to end.
-- ?1 owner
SELECT
    j.job_id, j.kind, j.queue, j.priority, j.args, j.metadata,
    l.status, l.attempt, l.max_attempts, l.crashes, l.max_crashes, l.token, l.ttl_ms, l.crash_policy,
    j.created_at, nullif(l.run_at, 253402300799999) AS run_at,
    l.lease_owner, l.claimed_at, l.lease_until, l.cancel_requested, NULL AS finished_at
FROM pacht_leases AS l
CROSS JOIN pacht_jobs AS j ON j.job_id = l.job_id
WHERE l.status = 'Processing'
    AND l.lease_owner = ?1
ORDER BY l.job_id;
