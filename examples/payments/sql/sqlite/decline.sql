-- Marks a payment declined. Zero rows: it is not there, or paid.
UPDATE payments
SET status = 'declined',
    settled_at = coalesce(settled_at, CAST(unixepoch('subsec') * 1000 AS INTEGER))
WHERE payment_id = ?1
  AND status IN ('created', 'declined');
