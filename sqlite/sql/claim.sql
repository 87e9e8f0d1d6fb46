-- Takes due Pending jobs of one queue and some kinds: best priority first, then run_at, then
-- id, never more than asked (R1). The attempt is counted and the token raised here (R5, R2).
-- The four priorities are probed one after the other along the index (queue, priority,
-- run_at, job_id), and the probing stops at the limit.
-- ?1 owner, ?2 queue, ?3 kinds as a JSON array, ?4 limit, ?5 now
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
        SELECT job_id FROM (
            SELECT job_id FROM pacht_leases
            WHERE queue = ?2 AND priority = 1 AND run_at <= ?5 AND status = 'Pending' AND attempt < max_attempts
                AND kind IN (SELECT value FROM json_each(?3))
            ORDER BY run_at, job_id LIMIT ?4)
        UNION ALL
        SELECT job_id FROM (
            SELECT job_id FROM pacht_leases
            WHERE queue = ?2 AND priority = 2 AND run_at <= ?5 AND status = 'Pending' AND attempt < max_attempts
                AND kind IN (SELECT value FROM json_each(?3))
            ORDER BY run_at, job_id LIMIT ?4)
        UNION ALL
        SELECT job_id FROM (
            SELECT job_id FROM pacht_leases
            WHERE queue = ?2 AND priority = 3 AND run_at <= ?5 AND status = 'Pending' AND attempt < max_attempts
                AND kind IN (SELECT value FROM json_each(?3))
            ORDER BY run_at, job_id LIMIT ?4)
        UNION ALL
        SELECT job_id FROM (
            SELECT job_id FROM pacht_leases
            WHERE queue = ?2 AND priority = 4 AND run_at <= ?5 AND status = 'Pending' AND attempt < max_attempts
                AND kind IN (SELECT value FROM json_each(?3))
            ORDER BY run_at, job_id LIMIT ?4)
        LIMIT ?4)
RETURNING job_id;
