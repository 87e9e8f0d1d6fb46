-- How long the newest closed leases were held, by kind, beside their TTL. Leases that an actor
-- took and closed in one statement were never held, and are left out; expired ones are counted
-- and not measured: they last exactly as long as they were left alone.
-- ?1 how many
WITH closed AS (
    SELECT
        j.kind,
        j.ttl_ms,
        CASE WHEN a.outcome <> 'Expired' THEN a.ended_at - a.claimed_at END AS held,
        a.late,
        a.outcome = 'Expired' AS expired
    FROM (
        SELECT job_id, claimed_at, ended_at, late, outcome
        FROM pacht_attempts
        WHERE outcome <> 'Resolved'
            AND NOT (outcome = 'Cancelled' AND claimed_at = ended_at)
        ORDER BY job_id DESC, token DESC
        LIMIT ?1) AS a
    CROSS JOIN pacht_jobs AS j ON j.job_id = a.job_id
), ranked AS (
    SELECT
        kind, ttl_ms, held, late, expired,
        row_number() OVER (PARTITION BY kind ORDER BY held NULLS LAST) AS place,
        count(held) OVER (PARTITION BY kind) AS measured
    FROM closed
)
SELECT
    kind,
    count(*) AS leases,
    coalesce(max(CASE WHEN place = (measured + 1) / 2 THEN held END), 0) AS p50,
    coalesce(max(CASE WHEN place = (measured * 99 + 99) / 100 THEN held END), 0) AS p99,
    coalesce(max(held), 0) AS longest,
    min(ttl_ms) AS min_ttl,
    coalesce(sum(held > ttl_ms), 0) AS longer_than_ttl,
    coalesce(sum(held > ttl_ms AND NOT late), 0) AS renewed,
    sum(expired) AS expired,
    sum(late) AS late
FROM ranked
GROUP BY kind
ORDER BY kind;
