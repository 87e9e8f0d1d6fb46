-- Due jobs by queue and kind: how many wait for a worker, and since when the oldest does. The
-- whole table of leases is read, and nothing of the history.
SELECT
    l.queue,
    l.kind,
    count(*),
    min(l.run_at)
FROM pacht.leases AS l
WHERE l.status = 'Pending'
    AND l.run_at <= statement_timestamp()
GROUP BY l.queue, l.kind
ORDER BY l.queue, l.kind;
