-- Says that a worker process ended in order. It sleeps no more either.
-- $1 owner
WITH risen AS (
    DELETE FROM pacht.sleepers AS s
    WHERE s.owner = $1::text
)
UPDATE pacht.workers
SET stopped_at = statement_timestamp()
WHERE owner = $1::text
    AND stopped_at IS NULL;
