-- Stores what is to be done. The args stand as they came, byte for byte.
-- ?1 now, ?2 run_at, ?3 ttl_ms, ?4 max_attempts, ?5 max_crashes, ?6 priority,
-- ?7 crash_policy, ?8 queue, ?9 kind, ?10 args, ?11 metadata
INSERT INTO pacht_jobs (
    created_at, run_at, ttl_ms, max_attempts, max_crashes, priority,
    crash_policy, queue, kind, args, metadata)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);
