-- Marks a payment declined. Zero rows: it is not there, or paid.
UPDATE pacht.payments
SET status = 'declined',
    settled_at = coalesce(settled_at, statement_timestamp())
WHERE payment_id = $1
  AND status IN ('created', 'declined');
