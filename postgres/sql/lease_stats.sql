-- Measures the newest closed leases, by kind. How long a lease was held is asked only of those
-- that their holder closed: an expired one lasts exactly as long as it was left alone.
-- $1 how many leases
WITH newest AS MATERIALIZED (
    SELECT a.job_id, a.outcome, a.late, a.ended_at - a.claimed_at AS held
    FROM pacht.attempts AS a
    WHERE a.outcome <> 'Resolved'
        AND a.ended_at > a.claimed_at
    ORDER BY a.job_id DESC, a.token DESC
    LIMIT $1::bigint
),
leases AS (
    SELECT
        j.kind,
        n.outcome,
        n.late,
        extract(epoch FROM n.held)::float8 * 1000000 AS held_us,
        j.ttl_ms,
        n.outcome <> 'Expired' AND n.held > j.ttl_ms * interval '1 millisecond' AS longer
    FROM newest AS n
    CROSS JOIN LATERAL (
        SELECT j.kind, j.ttl_ms
        FROM pacht.jobs AS j
        WHERE j.job_id = n.job_id
        LIMIT 1
    ) AS j
)
SELECT
    l.kind,
    count(*),
    coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY l.held_us) FILTER (WHERE l.outcome <> 'Expired'), 0)::bigint,
    coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY l.held_us) FILTER (WHERE l.outcome <> 'Expired'), 0)::bigint,
    coalesce(max(l.held_us) FILTER (WHERE l.outcome <> 'Expired'), 0)::bigint,
    min(l.ttl_ms),
    count(*) FILTER (WHERE l.longer),
    count(*) FILTER (WHERE l.longer AND NOT l.late),
    count(*) FILTER (WHERE l.outcome = 'Expired'),
    count(*) FILTER (WHERE l.late)
FROM leases AS l
GROUP BY l.kind
ORDER BY l.kind;
