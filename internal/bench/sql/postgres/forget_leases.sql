-- Deletes the leases of the benchmark's own jobs after a job: part of taking all of them away.
DELETE FROM pacht.leases
WHERE job_id > $1::bigint
    AND kind IN ('bench.noop', 'bench.foreign');
