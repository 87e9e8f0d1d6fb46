-- Says which of these queues have a due job of one of these kinds, and how long that look took
-- in microseconds. Each priority is probed by itself, as a claim does; locks nothing.
-- $1 queues, $2 kinds
SELECT
    d.queues,
    (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint
FROM (
    SELECT coalesce(array_agg(a.queue), '{}') AS queues
    FROM unnest($1::text[]) AS a (queue)
    WHERE EXISTS (
        SELECT 1
        FROM (VALUES (1::smallint), (2::smallint), (3::smallint), (4::smallint)) AS p (priority)
        CROSS JOIN LATERAL (
            SELECT 1
            FROM pacht.leases AS c
            WHERE c.queue = a.queue
                AND c.priority = p.priority
                AND c.run_at <= statement_timestamp()
                AND c.status = 'Pending'
                AND c.kind = ANY ($2::text[])
            ORDER BY c.run_at, c.job_id + 0
            LIMIT 1
        ) AS c
    )
) AS d;
