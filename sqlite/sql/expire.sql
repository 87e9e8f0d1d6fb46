-- Closes one lease past its time: the ledger row, with the next status decided on the lease
-- row as pacht.Next does for Expired, and the wait of pacht.CrashDelay (R9). Fenced by the
-- token it was found with, and by lease_until once more (R3, R6). vacate or finish follows in
-- the same transaction.
-- ?1 job, ?2 token, ?3 now
INSERT INTO pacht_attempts (
    job_id, token, claimed_at, ended_at, next_run_at, attempt, outcome, next_status, owner)
SELECT
    job_id,
    token,
    coalesce(claimed_at, ?3),
    ?3,
    CASE WHEN next = 'Pending' THEN ?3 + min(ttl_ms, (ttl_ms << min(crashes, 4)) / 10) END,
    attempt,
    'Expired',
    next,
    coalesce(lease_owner, '')
FROM (
    SELECT
        job_id, token, claimed_at, attempt, lease_owner, ttl_ms, crashes,
        CASE
            WHEN crash_policy = 'hold' THEN 'Stuck'
            WHEN attempt >= max_attempts THEN 'Stuck'
            WHEN crashes + 1 >= max_crashes THEN 'Stuck'
            WHEN cancel_requested THEN 'Cancelled'
            ELSE 'Pending'
        END AS next
    FROM pacht_leases
    WHERE job_id = ?1
        AND token = ?2
        AND status = 'Processing'
        AND (lease_until < ?3 OR lease_until IS NULL OR lease_until >= 253402300799999))
RETURNING next_status, next_run_at;
