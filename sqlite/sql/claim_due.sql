-- Says whether a claim would find anything now. Only a hint: it is read without the write
-- lock, so that workers with nothing to do never take the file from those who have.
-- ?1 queue, ?2 kinds as a JSON array, ?3 now
SELECT job_id
FROM pacht_leases
WHERE queue = ?1
    AND priority IN (1, 2, 3, 4)
    AND run_at <= ?3
    AND status = 'Pending'
    AND kind IN (SELECT value FROM json_each(?2))
LIMIT 1;
