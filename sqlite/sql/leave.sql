-- Says that a worker process ended in order.
-- ?1 owner, ?2 now
UPDATE pacht_workers
SET stopped_at = ?2
WHERE owner = ?1
    AND stopped_at IS NULL;
