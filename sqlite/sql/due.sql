-- Says which of these queues have a due job of one of these kinds. Only reads.
-- ?1 queues and ?2 kinds as JSON arrays, ?3 now
SELECT q.value
FROM json_each(?1) AS q
WHERE EXISTS (
    SELECT 1
    FROM pacht_leases AS l
    WHERE l.queue = q.value
        AND l.priority IN (1, 2, 3, 4)
        AND l.run_at <= ?3
        AND l.status = 'Pending'
        AND l.kind IN (SELECT k.value FROM json_each(?2) AS k)
);
