-- Sums up the open breaks, and those healed since then, by class, status and currency. The sum
-- comes in two parts, because SQLite fails on one that is too large, and money is no float.
-- ?1 healed since
SELECT
    class,
    status,
    coalesce(currency, ''),
    count(*),
    sum(amount_minor / 1000000000),
    sum(amount_minor % 1000000000),
    min(first_seen)
FROM (
    SELECT class, status, currency, amount_minor, first_seen
    FROM pacht_breaks
    WHERE status IN ('waiting', 'person')
    UNION ALL
    SELECT class, status, currency, amount_minor, first_seen
    FROM pacht_breaks
    WHERE status = 'healed'
        AND last_seen >= ?1
)
GROUP BY class, status, currency
ORDER BY class, status, currency NULLS FIRST;
