-- Answers how far the claims have got, in each priority, that go on from the latest look from the
-- start of a queue, and until when that holds: see claim.sql. Comes after gate.sql, whose lock the
-- claim before has given back with its commit.
-- $1 queue, $2 number of the kinds
WITH look AS (
    SELECT f.look_at
    FROM pacht.floors AS f
    WHERE f.queue = $1::text
        AND f.kinds = $2::bigint
        AND f.look_at > statement_timestamp()
    ORDER BY f.look_at DESC
    LIMIT 1
)
SELECT
    r.priority,
    (extract(epoch FROM r.run_at) * 1000000)::bigint,
    r.job_id,
    (extract(epoch FROM l.look_at) * 1000000)::bigint
FROM look AS l
CROSS JOIN (VALUES (1::smallint), (2::smallint), (3::smallint), (4::smallint)) AS p (priority)
CROSS JOIN LATERAL (
    SELECT f.priority, f.run_at, f.job_id
    FROM pacht.floors AS f
    WHERE f.queue = $1::text
        AND f.kinds = $2::bigint
        AND f.look_at = l.look_at
        AND f.priority = p.priority
    ORDER BY f.reached_at DESC
    LIMIT 1
) AS r;
