-- Leases past their time, in job order: which one a pass could not close.
-- $1 only jobs after this one, $2 limit
SELECT l.job_id, l.token
FROM pacht.leases AS l
WHERE l.status = 'Processing'
    AND l.lease_until <= statement_timestamp()
    AND l.job_id > $1::bigint
ORDER BY l.job_id
LIMIT $2::bigint;
