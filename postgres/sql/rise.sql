-- Says that a worker does not sleep on these queues any more: it is busy, or does not listen.
-- $1 owner, $2 queues
DELETE FROM pacht.sleepers AS s
WHERE s.owner = $1::text
    AND s.queue = ANY ($2::text[]);
