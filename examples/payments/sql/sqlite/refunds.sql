-- The refunds of one payment, by id.
SELECT r.refund_id, r.payment_id, r.amount_minor, r.currency, r.status, r.provider_id, r.origin, r.why
FROM refunds r
WHERE r.payment_id = ?1
ORDER BY r.refund_id;
