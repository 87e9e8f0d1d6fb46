-- Deletes finished jobs of one status; never one with a lease, nor one with an effect that has no
-- answer (R10). Its attempts, steps, effects and reports follow in the same transaction.
-- ?1 job ids as a JSON array, ?2 status, ?3 ended at or before
DELETE FROM pacht_jobs
WHERE job_id IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = pacht_jobs.job_id)
    AND NOT EXISTS (
        SELECT 1
        FROM pacht_effects AS e
        WHERE e.job_id = pacht_jobs.job_id
            AND e.state IN ('called', 'unknown'))
    AND EXISTS (
        SELECT 1
        FROM pacht_attempts AS a
        WHERE a.job_id = pacht_jobs.job_id
            AND a.token = (SELECT max(b.token) FROM pacht_attempts AS b WHERE b.job_id = a.job_id)
            AND a.next_status = ?2
            AND a.ended_at <= ?3)
RETURNING job_id;
