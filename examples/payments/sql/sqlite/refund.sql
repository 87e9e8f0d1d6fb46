-- One refund.
SELECT r.refund_id, r.payment_id, r.amount_minor, r.currency, r.status, r.provider_id, r.origin, r.why
FROM refunds r
WHERE r.refund_id = ?1;
