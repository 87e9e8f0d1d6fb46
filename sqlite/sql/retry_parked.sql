-- Takes a Stuck job back to Pending, due now: token and attempt go on, the original maximum
-- of attempts counts again from here.
-- ?1 job, ?2 now
UPDATE pacht_leases
SET status = 'Pending',
    run_at = ?2,
    crashes = 0,
    max_attempts = attempt + (SELECT j.max_attempts FROM pacht_jobs AS j WHERE j.job_id = pacht_leases.job_id),
    rev = rev + 1
WHERE job_id = ?1
    AND status = 'Stuck'
RETURNING job_id;
