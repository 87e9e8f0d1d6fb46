-- Takes due Pending jobs of one queue, one priority and some kinds: by run_at, then id, never
-- more than asked, each by this one conditional UPDATE (R1). The attempt is counted and the
-- token raised here (R5, R2). A claim runs it for one priority after the other, best first, in
-- one transaction, until its limit is reached. It walks along the index (queue, priority,
-- run_at, job_id) from where claim_look found the first row to take: a hint, what is taken is
-- decided here. It visits a bounded number of rows, because the file is locked meanwhile.
-- ?1 owner, ?2 queue, ?3 kinds as a JSON array, ?4 limit, ?5 now, ?6 priority, ?7 and ?8 run_at
-- and job_id to start from, ?9 most rows to visit
UPDATE pacht_leases
SET status = 'Processing',
    lease_owner = ?1,
    claimed_at = ?5,
    lease_until = ?5 + ttl_ms,
    attempt = attempt + 1,
    token = token + 1,
    rev = rev + 1
WHERE status = 'Pending'
    AND job_id IN (
        SELECT job_id
        FROM (
            SELECT job_id, status, kind, attempt, max_attempts FROM (
                SELECT job_id, status, kind, attempt, max_attempts FROM pacht_leases
                WHERE queue = ?2 AND priority = ?6 AND run_at = ?7 AND job_id >= ?8
                ORDER BY job_id)
            UNION ALL
            SELECT job_id, status, kind, attempt, max_attempts FROM (
                SELECT job_id, status, kind, attempt, max_attempts FROM pacht_leases
                WHERE queue = ?2 AND priority = ?6 AND run_at > ?7 AND run_at <= ?5
                ORDER BY run_at, job_id)
            LIMIT ?9)
        WHERE status = 'Pending'
            AND attempt < max_attempts
            AND kind IN (SELECT value FROM json_each(?3))
        LIMIT ?4)
RETURNING job_id, run_at, token, attempt, max_attempts, crashes, ttl_ms;
