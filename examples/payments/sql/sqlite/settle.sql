-- Changes a payment that is as it was read; zero rows: somebody else was faster.
UPDATE payments
SET status = ?3,
    charge_id = ?4,
    why = ?5,
    back_minor = ?6,
    rev = rev + 1,
    settled_at = CASE WHEN ?3 = 'pending' THEN NULL ELSE coalesce(settled_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)) END
WHERE payment_id = ?1
  AND rev = ?2;
