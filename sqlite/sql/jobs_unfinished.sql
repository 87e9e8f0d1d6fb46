-- A page of unfinished jobs, without args, whatever the history: along the leases, newest first.
-- ?1 status or '', ?2 kind or '', ?3 queue or '', ?4 before, ?5 limit, ?6 owner or '', ?7 expired only
SELECT
    j.job_id, j.kind, j.queue, j.priority, NULL AS args, NULL AS metadata,
    l.status, l.attempt, l.max_attempts, l.crashes, l.max_crashes, l.token, l.ttl_ms, l.crash_policy,
    j.created_at, nullif(l.run_at, 253402300799999) AS run_at,
    l.lease_owner, l.claimed_at, l.lease_until, l.cancel_requested, NULL AS finished_at
FROM pacht_leases AS l
CROSS JOIN pacht_jobs AS j ON j.job_id = l.job_id
WHERE l.job_id < ?4
    AND (?1 = '' OR l.status = ?1)
    AND (?2 = '' OR l.kind = ?2)
    AND (?3 = '' OR l.queue = ?3)
    AND (?6 = '' OR l.lease_owner = ?6)
    AND (NOT ?7 OR (l.status = 'Processing' AND l.lease_until < CAST(round(unixepoch('subsec') * 1000) AS INTEGER)))
ORDER BY l.job_id DESC
LIMIT ?5;
