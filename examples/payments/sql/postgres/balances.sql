-- What stands on each account.
SELECT account, currency, sum(amount_minor)::bigint AS balance
FROM pacht.entries
GROUP BY account, currency
ORDER BY account, currency;
