-- One payment.
SELECT payment_id, amount_minor, currency, status, coalesce(charge_ref, '')
FROM payments
WHERE payment_id = ?1;
