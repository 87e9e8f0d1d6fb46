-- A page, by id, of payments whose money may still be given back or taken back,
-- also one of which a part was taken back already.
SELECT
    p.payment_id, p.amount_minor, p.currency, p.payer, p.status, p.charge_id, p.why, p.rev,
    (extract(epoch FROM p.created_at) * 1000)::bigint AS created_ms,
    coalesce(p.not_after < statement_timestamp(), false) AS expired,
    p.back_minor,
    (SELECT coalesce(sum(r.amount_minor), 0) FROM pacht.refunds r WHERE r.payment_id = p.payment_id AND r.status = 'succeeded')::bigint AS refunded,
    (SELECT coalesce(sum(r.amount_minor), 0) FROM pacht.refunds r WHERE r.payment_id = p.payment_id AND r.status = 'pending')::bigint AS refunding
FROM pacht.payments p
WHERE p.payment_id > $1
  AND p.status IN ('succeeded', 'charged_back')
ORDER BY p.payment_id
LIMIT $2;
