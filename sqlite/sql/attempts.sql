-- The ledger of one job, oldest first.
-- ?1 job
SELECT job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status, next_run_at, error, output
FROM pacht_attempts
WHERE job_id = ?1
ORDER BY token;
