-- Gives the job its vacant lease, in the transaction of enqueue.
-- ?1 job, ?2 run_at, ?3 ttl_ms, ?4 max_attempts, ?5 max_crashes, ?6 priority,
-- ?7 crash_policy, ?8 queue, ?9 kind
INSERT INTO pacht_leases (
    job_id, run_at, ttl_ms, max_attempts, max_crashes, priority, crash_policy, queue, kind)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);
