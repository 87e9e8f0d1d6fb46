-- What was claimed just now, with args, in the order of the claim.
-- ?1 job ids as a JSON array
SELECT
    j.job_id, j.kind, j.queue, j.priority, j.args, j.metadata,
    l.status, l.attempt, l.max_attempts, l.crashes, l.max_crashes, l.token, l.ttl_ms, l.crash_policy,
    j.created_at, nullif(l.run_at, 253402300799999) AS run_at,
    l.lease_owner, l.claimed_at, l.lease_until, l.cancel_requested, NULL AS finished_at
FROM json_each(?1) AS c
CROSS JOIN pacht_leases AS l ON l.job_id = c.value
CROSS JOIN pacht_jobs AS j ON j.job_id = l.job_id
ORDER BY l.priority, l.run_at, l.job_id;
