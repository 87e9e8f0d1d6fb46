-- What was done by hand to one job, or with NULL to queues, oldest first.
-- ?1 job or NULL
SELECT at, actor, act, job_id, queue, reason
FROM pacht_audit
WHERE job_id IS ?1
ORDER BY audit_id;
