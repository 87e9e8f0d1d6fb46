-- Stores a queue's own settings, for jobs enqueued from now on; 0 and '' mean the default.
-- $1 queue, $2 ttl_ms, $3 max_attempts, $4 max_crashes, $5 crash_policy, $6 actor, $7 reason
WITH stored AS (
    INSERT INTO pacht.queues (queue, ttl_ms, max_attempts, max_crashes, crash_policy)
    VALUES ($1::text, nullif($2::integer, 0), nullif($3::integer, 0), nullif($4::integer, 0), nullif($5::text, ''))
    ON CONFLICT (queue) DO UPDATE
    SET ttl_ms = excluded.ttl_ms,
        max_attempts = excluded.max_attempts,
        max_crashes = excluded.max_crashes,
        crash_policy = excluded.crash_policy
)
INSERT INTO pacht.audit (at, actor, act, queue, reason)
VALUES (statement_timestamp(), $6::text, 'set queue', $1::text, $7::text);
