-- What stands on each account.
SELECT account, currency, sum(amount_minor) AS balance
FROM entries
GROUP BY account, currency
ORDER BY account, currency;
