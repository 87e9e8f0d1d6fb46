-- Puts a lease that was just closed back to Pending, or parks it as Stuck. Released and
-- Snoozed give the attempt back (R5), and a failure that says so; a crash adds to the crashes
-- in a row, a release keeps them, all else resets them (R9).
-- ?1 job, ?2 token, ?3 next status, ?4 run_at or NULL, ?5 outcome, ?6 give back
UPDATE pacht_leases
SET status = ?3,
    run_at = coalesce(?4, 253402300799999),
    attempt = attempt - CASE
        WHEN ?5 IN ('Released', 'Snoozed') THEN 1
        WHEN ?5 = 'Failed' AND ?6 THEN 1
        ELSE 0
    END,
    crashes = CASE ?5
        WHEN 'Expired' THEN crashes + 1
        WHEN 'Released' THEN crashes
        ELSE 0
    END,
    cancel_requested = 0,
    lease_owner = NULL,
    claimed_at = NULL,
    lease_until = NULL,
    rev = rev + 1
WHERE job_id = ?1
    AND token = ?2
    AND status = 'Processing';
