-- A page of payments, by id.
SELECT
    p.payment_id, p.amount_minor, p.currency, p.payer, p.status, p.charge_id, p.why, p.rev,
    (extract(epoch FROM p.created_at) * 1000)::bigint AS created_ms,
    coalesce(p.not_after < statement_timestamp(), false) AS expired,
    p.back_minor,
    (SELECT coalesce(sum(r.amount_minor), 0) FROM pacht.refunds r WHERE r.payment_id = p.payment_id AND r.status = 'succeeded')::bigint AS refunded,
    (SELECT coalesce(sum(r.amount_minor), 0) FROM pacht.refunds r WHERE r.payment_id = p.payment_id AND r.status = 'pending')::bigint AS refunding
FROM pacht.payments p
WHERE p.payment_id > $1
ORDER BY p.payment_id
LIMIT $2;
