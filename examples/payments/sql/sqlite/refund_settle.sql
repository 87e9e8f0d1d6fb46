-- Ends a refund. It never goes back from succeeded.
UPDATE refunds
SET status = ?2,
    provider_id = ?3,
    why = ?4,
    settled_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE refund_id = ?1
  AND status <> 'succeeded';
