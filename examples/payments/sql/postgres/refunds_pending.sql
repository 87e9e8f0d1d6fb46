-- A page, by id, of refunds that have been pending for longer than $3 milliseconds.
SELECT r.refund_id, r.payment_id, r.amount_minor, r.currency, r.status, r.provider_id, r.origin, r.why
FROM pacht.refunds r
WHERE r.refund_id > $1
  AND r.status = 'pending'
  AND r.created_at < statement_timestamp() - $3::bigint * interval '1 millisecond'
ORDER BY r.refund_id
LIMIT $2;
