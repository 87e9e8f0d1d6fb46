-- What was done by hand to one job, oldest first; with 0 to queues.
-- $1 job
SELECT a.at, a.actor, a.act, coalesce(a.job_id, 0), coalesce(a.queue, ''), a.reason
FROM pacht.audit AS a
WHERE ($1::bigint = 0 AND a.job_id IS NULL)
    OR a.job_id = nullif($1::bigint, 0)
ORDER BY a.audit_id;
