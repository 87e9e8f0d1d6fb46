-- F1: completes the jobs that were run.
UPDATE floor_jobs
SET status = 'done'
WHERE job_id = ANY ($1);
