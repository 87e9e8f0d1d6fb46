-- Looks at the next jobs by id, and which of them completed long enough ago. A job that is
-- younger than that cannot have completed before, and ids grow with time: so nothing behind
-- the first young one need be looked at. Read before the write lock is taken; prune looks again.
-- ?1 after this job, ?2 how many, ?3 ended at or before
SELECT
    j.job_id,
    0,
    j.created_at <= ?3,
    EXISTS (
        SELECT 1
        FROM pacht_attempts AS a
        WHERE a.job_id = j.job_id
            AND a.next_status = 'Completed'
            AND a.ended_at <= ?3)
FROM pacht_jobs AS j
WHERE j.job_id > ?1
ORDER BY j.job_id
LIMIT ?2;
