-- Stores jobs: what is to be done. The columns are those of copy.go, in its order.
COPY pacht.jobs (job_id, created_at, run_at, ttl_ms, max_attempts, max_crashes, priority, crash_policy, queue, kind, args, metadata)
FROM STDIN
WITH (FORMAT binary);
