-- How long the newest closed leases were held, by kind, beside their TTL. Leases that an actor
-- took and closed in one statement were never held, and are left out; expired ones are counted
-- and not measured: they last exactly as long as they were left alone.
-- $1 how many
WITH newest AS MATERIALIZED (
    SELECT a.job_id, a.outcome, a.late, CASE WHEN a.outcome <> 'Expired' THEN extract(epoch FROM a.ended_at - a.claimed_at)::float8 * 1000000 END AS held_us
    FROM pacht.attempts AS a
    WHERE a.outcome <> 'Resolved'
        AND NOT (a.outcome = 'Cancelled' AND a.claimed_at = a.ended_at)
    ORDER BY a.job_id DESC, a.token DESC
    LIMIT $1::bigint
),
closed AS (
    SELECT
        j.kind,
        j.ttl_ms,
        n.held_us,
        n.late,
        n.outcome = 'Expired' AS expired,
        n.held_us > j.ttl_ms * 1000.0 AS longer
    FROM newest AS n
    CROSS JOIN LATERAL (
        SELECT j.kind, j.ttl_ms
        FROM pacht.jobs AS j
        WHERE j.job_id = n.job_id
        LIMIT 1
    ) AS j
)
SELECT
    c.kind,
    count(*),
    coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY c.held_us), 0)::bigint,
    coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY c.held_us), 0)::bigint,
    coalesce(max(c.held_us), 0)::bigint,
    min(c.ttl_ms),
    count(*) FILTER (WHERE c.longer),
    count(*) FILTER (WHERE c.longer AND NOT c.late AND NOT c.expired),
    count(*) FILTER (WHERE c.expired),
    count(*) FILTER (WHERE c.late)
FROM closed AS c
GROUP BY c.kind
ORDER BY c.kind;
