-- Looks at the next Dead or Cancelled endings by the time they came, found by their partial
-- index, and which of their jobs are so still. Read before the write lock is taken; prune
-- looks again.
-- ?1 Dead or Cancelled, ?2 and ?3 after this place, as microseconds since 1970 and job, ?4 how
-- many, ?5 ended at or before
SELECT
    a.job_id,
    a.ended_at * 1000,
    1,
    NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = a.job_id)
        AND NOT EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
FROM pacht_attempts AS a
WHERE a.next_status = ?1
    AND a.next_status IN ('Dead', 'Cancelled')
    AND (a.ended_at, a.job_id) > (?2 / 1000, ?3)
    AND a.ended_at <= ?5
ORDER BY a.ended_at, a.job_id
LIMIT ?4;
