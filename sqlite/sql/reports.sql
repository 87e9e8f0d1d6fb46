-- What came too late for one job, oldest first.
-- ?1 job
SELECT job_id, token, at, owner, outcome, error
FROM pacht_reports
WHERE job_id = ?1
ORDER BY at, token, outcome;
