-- How long the newest closed leases were held, by kind, beside their TTL. Leases that an actor
-- took and closed in one statement were never held, and are left out.
-- ?1 how many
WITH closed AS (
    SELECT
        j.kind,
        j.ttl_ms,
        a.ended_at - a.claimed_at AS held,
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
        row_number() OVER (PARTITION BY kind ORDER BY held) AS place,
        count(*) OVER (PARTITION BY kind) AS leases
    FROM closed
)
SELECT
    kind,
    count(*) AS leases,
    max(CASE WHEN place = (leases + 1) / 2 THEN held END) AS p50,
    max(CASE WHEN place = (leases * 99 + 99) / 100 THEN held END) AS p99,
    max(held) AS longest,
    min(ttl_ms) AS min_ttl,
    sum(held > ttl_ms) AS longer_than_ttl,
    sum(held > ttl_ms AND NOT late AND NOT expired) AS renewed,
    sum(expired) AS expired,
    sum(late) AS late
FROM ranked
GROUP BY kind
ORDER BY kind;
