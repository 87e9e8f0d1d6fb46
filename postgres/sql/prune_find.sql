-- Finds and locks finished jobs that may be deleted; those that somebody acts on are passed
-- over. prune.sql looks again.
-- $1 status, $2 finished at least this long ago, in microseconds, $3 limit
SELECT j.job_id
FROM pacht.attempts AS a
INNER JOIN pacht.jobs AS j ON j.job_id = a.job_id
WHERE a.next_status = $1::text
    AND a.ended_at <= statement_timestamp() - $2::bigint * interval '1 microsecond'
    AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = a.job_id)
    AND NOT EXISTS (SELECT 1 FROM pacht.attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
LIMIT $3::bigint
FOR UPDATE OF j SKIP LOCKED;
