-- Unfinished, Dead and Cancelled jobs by queue and status; Completed ones are not counted,
-- that would read the whole history.
SELECT
    l.queue,
    l.status,
    count(*) AS jobs,
    coalesce(sum(l.status = 'Pending' AND l.run_at <= n.now), 0) AS due,
    coalesce(sum(l.status = 'Processing' AND l.lease_until < n.now), 0) AS expired
FROM pacht_leases AS l
CROSS JOIN (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now) AS n
GROUP BY l.queue, l.status
UNION ALL
SELECT
    j.queue,
    a.next_status,
    count(*),
    0,
    0
FROM pacht_attempts AS a
CROSS JOIN pacht_jobs AS j ON j.job_id = a.job_id
WHERE a.next_status IN ('Dead', 'Cancelled')
    AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = a.job_id)
    AND NOT EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
GROUP BY j.queue, a.next_status
ORDER BY 1, 2;
