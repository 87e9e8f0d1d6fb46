-- The books of the benchmark's own jobs after job ?1: how many there are, how many have exactly
-- one Completed attempt, how many still have a lease.
SELECT
    count(*),
    count(*) FILTER (WHERE b.completed = 1),
    count(*) FILTER (WHERE b.leased)
FROM (
    SELECT
        (SELECT count(*) FROM pacht_attempts AS a WHERE a.job_id = j.job_id AND a.outcome = 'Completed') AS completed,
        EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = j.job_id) AS leased
    FROM pacht_jobs AS j
    WHERE j.job_id > ?1
        AND j.kind = 'bench.noop'
) AS b;
