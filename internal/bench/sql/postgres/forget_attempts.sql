-- Deletes the attempts of the benchmark's own jobs after a job.
DELETE FROM pacht.attempts AS t
WHERE job_id > $1::bigint
    AND EXISTS (
        SELECT 1
        FROM pacht.jobs AS j
        WHERE j.job_id = t.job_id
            AND j.kind IN ('bench.noop', 'bench.foreign')
    );
