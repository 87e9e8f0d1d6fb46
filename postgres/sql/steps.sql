-- What a job has reached, oldest first.
-- $1 job
SELECT s.token, s.name, coalesce(s.data::text, ''), s.at
FROM pacht.steps AS s
WHERE s.job_id = $1::bigint
ORDER BY s.step_id;
