-- The ledger of state_parked.sql: each job's only attempt ended with an unknown outcome.
INSERT INTO pacht.attempts (job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner)
SELECT j.job_id, 1, j.created_at, j.created_at, 1, 'Unknown', 'Stuck', 'bench'
FROM pacht.jobs AS j
WHERE j.job_id > $1::bigint
    AND j.queue = 'bench';
