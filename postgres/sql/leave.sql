-- Says that a worker process ended in order.
-- $1 owner
UPDATE pacht.workers
SET stopped_at = statement_timestamp()
WHERE owner = $1::text
    AND stopped_at IS NULL;
