-- Counts unfinished, Dead and Cancelled jobs by queue and status. Completed ones are not
-- counted: that would read the whole history.
SELECT
    l.queue,
    l.status,
    count(*),
    count(*) FILTER (WHERE l.status = 'Pending' AND l.run_at <= statement_timestamp()),
    count(*) FILTER (WHERE l.status = 'Processing' AND l.lease_until <= statement_timestamp())
FROM pacht.leases AS l
GROUP BY l.queue, l.status
UNION ALL
SELECT j.queue, a.next_status, count(*), 0, 0
FROM pacht.attempts AS a
INNER JOIN pacht.jobs AS j ON j.job_id = a.job_id
WHERE a.next_status IN ('Dead', 'Cancelled')
    AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = a.job_id)
    AND NOT EXISTS (SELECT 1 FROM pacht.attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
GROUP BY j.queue, a.next_status
ORDER BY 1, 2;
