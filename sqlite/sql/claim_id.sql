-- Takes one job by its id: a due Pending one, or an expired lease that claim_id_close has
-- just closed. Zero rows is no error: somebody else has it, or the watcher decides.
-- ?1 job, ?2 now, ?3 owner
UPDATE pacht_leases
SET crashes = CASE WHEN status = 'Processing' THEN crashes + 1 ELSE crashes END,
    status = 'Processing',
    lease_owner = ?3,
    claimed_at = ?2,
    lease_until = ?2 + ttl_ms,
    attempt = attempt + 1,
    token = token + 1,
    rev = rev + 1
WHERE job_id = ?1
    AND attempt < max_attempts
    AND (
        (status = 'Pending' AND run_at <= ?2)
        OR (status = 'Processing'
            AND lease_until < ?2
            AND crash_policy = 'retry'
            AND crashes + 1 < max_crashes
            AND cancel_requested = 0))
RETURNING job_id;
