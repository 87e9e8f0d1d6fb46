-- Makes jobs for a state of the tables; their leases or attempts follow in the same transaction.
-- ?1 how many, ?2 kind, ?3 priority, ?4 due in so many seconds
WITH RECURSIVE series (n) AS (
    SELECT 1
    UNION ALL
    SELECT s.n + 1
    FROM series AS s
    WHERE s.n < ?1
)
INSERT INTO pacht_jobs (created_at, run_at, ttl_ms, max_attempts, max_crashes, priority, crash_policy, queue, kind, args)
SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER),
    CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4 * 1000,
    60000,
    25,
    3,
    ?3,
    'retry',
    'bench',
    ?2,
    '{"n":-1}'
FROM series AS s;
