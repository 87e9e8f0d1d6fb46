-- Stores a queue's own settings; they count for jobs enqueued from then on. 0 and '' mean the default.
-- ?1 queue, ?2 ttl_ms, ?3 max_attempts, ?4 max_crashes, ?5 crash_policy
INSERT INTO pacht_queues (queue, ttl_ms, max_attempts, max_crashes, crash_policy)
VALUES (?1, nullif(?2, 0), nullif(?3, 0), nullif(?4, 0), nullif(?5, ''))
ON CONFLICT (queue) DO UPDATE
SET ttl_ms = excluded.ttl_ms,
    max_attempts = excluded.max_attempts,
    max_crashes = excluded.max_crashes,
    crash_policy = excluded.crash_policy;
