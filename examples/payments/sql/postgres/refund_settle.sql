-- Ends a refund. It never goes back from succeeded.
UPDATE pacht.refunds
SET status = $2,
    provider_id = $3,
    why = $4,
    settled_at = statement_timestamp()
WHERE refund_id = $1
  AND status <> 'succeeded';
