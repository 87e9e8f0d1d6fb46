-- Deletes the benchmark's own jobs after a job, when nothing of them is left elsewhere.
DELETE FROM pacht.jobs
WHERE job_id > $1::bigint
    AND kind IN ('bench.noop', 'bench.foreign');
