-- Stores the vacant leases of jobs. The columns are those of copy.go, in its order.
COPY pacht.leases (job_id, run_at, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind)
FROM STDIN
WITH (FORMAT binary);
