-- A new payment. One that is there already is left as it is: the job's idempotency key says
-- whether it is the same one. ?5 is how long it may be charged, in milliseconds; null = for ever.
INSERT INTO payments (payment_id, amount_minor, currency, payer, not_after)
VALUES (?1, ?2, ?3, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?5)
ON CONFLICT (payment_id) DO NOTHING;
