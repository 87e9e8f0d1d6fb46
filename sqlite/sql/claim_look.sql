-- The first row of one queue and priority that a claim may take now, from a given row on. Only
-- a hint: it is read without the write lock, so that nobody waits however long it takes to get
-- past rows that may not be taken, and so that workers with nothing to do never take the file
-- from those who have.
-- ?1 queue, ?2 kinds as a JSON array, ?3 now, ?4 priority, ?5 and ?6 run_at and job_id to start from
SELECT run_at, job_id
FROM (
    SELECT run_at, job_id FROM (
        SELECT run_at, job_id FROM pacht_leases
        WHERE queue = ?1 AND priority = ?4 AND run_at = ?5 AND job_id >= ?6
            AND status = 'Pending' AND attempt < max_attempts AND kind IN (SELECT value FROM json_each(?2))
        ORDER BY job_id LIMIT 1)
    UNION ALL
    SELECT run_at, job_id FROM (
        SELECT run_at, job_id FROM pacht_leases
        WHERE queue = ?1 AND priority = ?4 AND run_at > ?5 AND run_at <= ?3
            AND status = 'Pending' AND attempt < max_attempts AND kind IN (SELECT value FROM json_each(?2))
        ORDER BY run_at, job_id LIMIT 1)
    LIMIT 1);
