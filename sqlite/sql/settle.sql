-- Closes one held lease: the ledger row, written from the lease row while the file's write
-- lock is held, with the next status decided on that row as pacht.Next does (R4, R9). vacate
-- or finish follows in the same transaction. Zero rows: the lease is not ours any more (R3).
-- A settle past lease_until counts while nobody closed or took the lease, and is late (R7).
-- ?1 job, ?2 token, ?3 now, ?4 outcome, ?5 permanent, ?6 give back, ?7 delay in ms, ?8 error, ?9 output
INSERT INTO pacht_attempts (
    job_id, token, claimed_at, ended_at, next_run_at, attempt, late, outcome, next_status, owner, error, output)
SELECT
    job_id,
    token,
    claimed_at,
    ?3,
    CASE
        WHEN next <> 'Pending' THEN NULL
        WHEN ?4 = 'Released' AND ?7 = 0 THEN run_at  -- keeps its place in the queue
        ELSE ?3 + ?7
    END,
    attempt,
    lease_until < ?3,
    ?4,
    next,
    lease_owner,
    ?8,
    ?9
FROM (
    SELECT
        job_id, token, claimed_at, lease_until, run_at, attempt, lease_owner,
        CASE
            WHEN ?4 = 'Completed' THEN 'Completed'
            WHEN ?4 = 'Cancelled' THEN 'Cancelled'
            WHEN ?4 = 'Unknown' THEN 'Stuck'
            WHEN ?4 = 'Failed' AND ?5 THEN 'Dead'
            WHEN ?4 = 'Failed' AND NOT ?6 AND attempt >= max_attempts THEN 'Dead'
            WHEN cancel_requested THEN 'Cancelled'
            ELSE 'Pending'
        END AS next
    FROM pacht_leases
    WHERE job_id = ?1
        AND token = ?2
        AND status = 'Processing')
RETURNING next_status, next_run_at, late;
