-- The queues that have settings of their own.
SELECT queue, coalesce(ttl_ms, 0), coalesce(max_attempts, 0), coalesce(max_crashes, 0), coalesce(crash_policy, '')
FROM pacht_queues
ORDER BY queue;
