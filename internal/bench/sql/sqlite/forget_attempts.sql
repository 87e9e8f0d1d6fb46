-- Deletes the attempts of the benchmark's own jobs after a job.
DELETE FROM pacht_attempts
WHERE job_id > ?1
    AND EXISTS (
        SELECT 1
        FROM pacht_jobs AS j
        WHERE j.job_id = pacht_attempts.job_id
            AND j.kind IN ('bench.noop', 'bench.foreign')
    );
