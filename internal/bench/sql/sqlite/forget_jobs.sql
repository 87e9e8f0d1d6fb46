-- Deletes the benchmark's own jobs after a job, when nothing of them is left elsewhere.
DELETE FROM pacht_jobs
WHERE job_id > ?1
    AND kind IN ('bench.noop', 'bench.foreign');
