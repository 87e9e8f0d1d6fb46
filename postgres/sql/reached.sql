-- Answers how far the claims have got, in each priority, that go on from the newest look from the
-- start of a queue, when that was and until when it holds: see claim.sql. Comes after gate.sql, whose
-- lock the claim before has given back with its commit. Rows from the future, from before the
-- server's clock was put back, count for nothing.
-- $1 queue, $2 number of the kinds
WITH look AS (
    SELECT f.looked_at, f.until
    FROM pacht.floors AS f
    WHERE f.queue = $1::text
        AND f.kinds = $2::bigint
        AND f.looked_at > statement_timestamp() - interval '10 minutes'
        AND f.looked_at < statement_timestamp() + interval '1 minute'
    ORDER BY f.looked_at DESC
    LIMIT 1
)
SELECT
    r.priority,
    (extract(epoch FROM r.run_at) * 1000000)::bigint,
    r.job_id,
    (extract(epoch FROM l.looked_at) * 1000000)::bigint,
    (extract(epoch FROM l.until) * 1000000)::bigint
FROM look AS l
CROSS JOIN (VALUES (1::smallint), (2::smallint), (3::smallint), (4::smallint)) AS p (priority)
CROSS JOIN LATERAL (
    SELECT f.priority, f.run_at, f.job_id
    FROM pacht.floors AS f
    WHERE f.queue = $1::text
        AND f.kinds = $2::bigint
        AND f.looked_at = l.looked_at
        AND f.priority = p.priority
        AND f.reached_at < statement_timestamp() + interval '1 minute'
    ORDER BY f.reached_at DESC
    LIMIT 1
) AS r;
