-- A new payment. One that is there already is left as it is: the job's idempotency key says
-- whether it is the same one.
INSERT INTO pacht.payments (payment_id, amount_minor, currency)
VALUES ($1, $2, $3)
ON CONFLICT (payment_id) DO NOTHING;
