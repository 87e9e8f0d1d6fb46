-- What a job has reached, oldest first.
-- ?1 job
SELECT token, name, data, at
FROM pacht_steps
WHERE job_id = ?1
ORDER BY step_id;
