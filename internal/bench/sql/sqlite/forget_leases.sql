-- Deletes the leases of the benchmark's own jobs after a job: part of taking all of them away.
DELETE FROM pacht_leases
WHERE job_id > ?1
    AND kind IN ('bench.noop', 'bench.foreign');
