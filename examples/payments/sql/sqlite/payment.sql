-- One payment, with what was given back of it and what is about to be.
SELECT
    p.payment_id, p.amount_minor, p.currency, p.payer, p.status, p.charge_id, p.why, p.rev,
    p.created_at AS created_ms,
    coalesce(p.not_after < CAST(unixepoch('subsec') * 1000 AS INTEGER), false) AS expired,
    p.back_minor,
    (SELECT coalesce(sum(r.amount_minor), 0) FROM refunds r WHERE r.payment_id = p.payment_id AND r.status = 'succeeded') AS refunded,
    (SELECT coalesce(sum(r.amount_minor), 0) FROM refunds r WHERE r.payment_id = p.payment_id AND r.status = 'pending') AS refunding
FROM payments p
WHERE p.payment_id = ?1;
