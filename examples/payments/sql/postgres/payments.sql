-- A page of payments, by id.
SELECT payment_id, amount_minor, currency, status, coalesce(charge_ref, '')
FROM pacht.payments
WHERE payment_id > $1
ORDER BY payment_id
LIMIT $2;
