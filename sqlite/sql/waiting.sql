-- Due jobs by queue and kind: how many wait for a worker, and since when the oldest does. The
-- whole table of leases is read, and nothing of the history.
SELECT
    l.queue,
    l.kind,
    count(*) AS jobs,
    min(l.run_at) AS since
FROM pacht_leases AS l
CROSS JOIN (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now) AS n
WHERE l.status = 'Pending'
    AND l.run_at <= n.now
GROUP BY l.queue, l.kind
ORDER BY l.queue, l.kind;
