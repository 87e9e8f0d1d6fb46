-- Candidates for a deletion: finished long enough ago. Read before the write lock is taken;
-- prune looks again.
-- ?1 status, ?2 ended at or before, ?3 limit
SELECT a.job_id
FROM pacht_attempts AS a
WHERE a.next_status = ?1
    AND a.ended_at <= ?2
    AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = a.job_id)
    AND NOT EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
ORDER BY a.job_id
LIMIT ?3;
