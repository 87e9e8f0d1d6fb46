-- What came too late for one job, oldest first.
-- $1 job
SELECT r.job_id, r.token, r.at, r.owner, r.outcome, coalesce(r.error, '')
FROM pacht.reports AS r
WHERE r.job_id = $1::bigint
ORDER BY r.at, r.token, r.outcome;
