-- The first half of taking an expired lease by id: writes its ledger row, if policy and both
-- caps leave room for another attempt and no cancel is requested (R1). claim_id follows in
-- the same transaction, with the same conditions.
-- ?1 job, ?2 now
INSERT INTO pacht_attempts (job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner)
SELECT job_id, token, claimed_at, ?2, attempt, 'Expired', 'Processing', lease_owner
FROM pacht_leases
WHERE job_id = ?1
    AND status = 'Processing'
    AND lease_until < ?2
    AND crash_policy = 'retry'
    AND attempt < max_attempts
    AND crashes + 1 < max_crashes
    AND cancel_requested = 0;
