-- Sums up the open breaks, and those healed since then, by class, status and currency.
-- $1 healed since, in microseconds since 1970
SELECT
    b.class,
    b.status,
    coalesce(b.currency, ''),
    count(*),
    least(sum(b.amount_minor), 9223372036854775807)::bigint,
    min(b.first_seen)
FROM (
    SELECT o.class, o.status, o.currency, o.amount_minor, o.first_seen
    FROM pacht.breaks AS o
    WHERE o.status IN ('waiting', 'person')
    UNION ALL
    SELECT h.class, h.status, h.currency, h.amount_minor, h.first_seen
    FROM pacht.breaks AS h
    WHERE h.status = 'healed'
        AND h.last_seen >= timestamptz 'epoch' + $1::bigint * interval '1 microsecond'
) AS b
GROUP BY b.class, b.status, b.currency
ORDER BY b.class, b.status, b.currency NULLS FIRST;
