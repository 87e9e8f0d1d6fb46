-- Tells at the commit who sleeps on these queues, as enqueue.sql does.
-- $1 queues with jobs that are due now
SELECT count(pg_notify(k.channel, k.queue)::text)  -- equal notices of a transaction are one
FROM pacht.sleepers AS k
WHERE k.queue = ANY ($1::text[])
    AND k.until > statement_timestamp()
    AND pg_notification_queue_usage() < 0.5;
