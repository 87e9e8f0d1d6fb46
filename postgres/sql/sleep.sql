-- Says that a worker with free slots listens and sleeps on these queues: from the commit on,
-- an enqueue of a job that is due tells it. Takes away rows of workers that were killed long
-- ago, a hundred at most; those of the living it leaves alone, also after an outage.
-- $1 owner, $2 queues, $3 channel, $4 life in milliseconds
WITH lapsed AS MATERIALIZED (
    SELECT s.queue, s.owner
    FROM pacht.sleepers AS s
    WHERE s.until <= statement_timestamp() - interval '10 minutes'
        AND s.owner <> $1::text
    LIMIT 100
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM pacht.sleepers AS s
    USING lapsed AS l
    WHERE s.queue = l.queue
        AND s.owner = l.owner
)
INSERT INTO pacht.sleepers (queue, owner, channel, until)
SELECT DISTINCT a.queue, $1::text, $3::text, statement_timestamp() + $4::bigint * interval '1 millisecond'
FROM unnest($2::text[]) AS a (queue)
ON CONFLICT (queue, owner) DO UPDATE
SET channel = excluded.channel,
    until = excluded.until;
