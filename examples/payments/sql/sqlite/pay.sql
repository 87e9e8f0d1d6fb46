-- Marks a payment paid by a charge. Zero rows: it is not there, declined, or paid by another
-- charge. Paid by this very charge counts as done.
UPDATE payments
SET status = 'paid',
    charge_ref = ?2,
    settled_at = coalesce(settled_at, CAST(unixepoch('subsec') * 1000 AS INTEGER))
WHERE payment_id = ?1
  AND (status = 'created' OR charge_ref = ?2);
