-- The queues that have settings of their own.
SELECT q.queue, coalesce(q.ttl_ms, 0), coalesce(q.max_attempts, 0), coalesce(q.max_crashes, 0), coalesce(q.crash_policy, '')
FROM pacht.queues AS q
ORDER BY q.queue;
