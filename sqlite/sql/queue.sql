-- The settings of one queue. No row, or NULL: the defaults.
-- ?1 queue
SELECT coalesce(ttl_ms, 0), coalesce(max_attempts, 0), coalesce(max_crashes, 0), coalesce(crash_policy, '')
FROM pacht_queues
WHERE queue = ?1;
