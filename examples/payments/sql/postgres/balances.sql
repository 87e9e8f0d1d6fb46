-- What stands on each account, as thousands of millions and the rest: a sum of amounts may be more
-- than 64 bits hold, and these two are not.
SELECT
    account,
    currency,
    sum(amount_minor / 1000000000)::bigint AS high,
    sum(amount_minor % 1000000000)::bigint AS low
FROM pacht.entries
GROUP BY account, currency
ORDER BY account, currency;
