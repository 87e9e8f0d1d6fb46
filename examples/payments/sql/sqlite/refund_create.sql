-- A refund that we ask for.
INSERT INTO refunds (refund_id, payment_id, amount_minor, currency, origin)
VALUES (?1, ?2, ?3, ?4, 'here');
