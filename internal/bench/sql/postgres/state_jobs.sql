-- Makes jobs for a state of the tables; their leases or attempts follow in the same transaction.
-- $1 how many, $2 kind, $3 priority, $4 due in so many seconds
INSERT INTO pacht.jobs (created_at, run_at, ttl_ms, max_attempts, max_crashes, priority, crash_policy, queue, kind, args)
SELECT
    statement_timestamp(),
    statement_timestamp() + $4::bigint * interval '1 second',
    60000,
    25,
    3,
    $3::bigint,
    'retry',
    'bench',
    $2::text,
    '{"n":-1}'
FROM generate_series(1, $1::bigint);
