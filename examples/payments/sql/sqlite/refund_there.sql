-- A refund that was made at the provider's side, by the provider's id.
INSERT INTO refunds (refund_id, payment_id, amount_minor, currency, status, provider_id, origin, settled_at)
VALUES (?1, ?2, ?3, ?4, 'succeeded', ?5, 'there', CAST(unixepoch('subsec') * 1000 AS INTEGER));
