-- Extends one lease to now plus the job's own TTL. Expired means expired (R7); the token is
-- checked, never changed (R2). Zero rows: lost.
-- ?1 job, ?2 token, ?3 now
UPDATE pacht_leases
SET lease_until = ?3 + ttl_ms,
    rev = rev + 1
WHERE job_id = ?1
    AND token = ?2
    AND status = 'Processing'
    AND lease_until >= ?3
RETURNING lease_until, cancel_requested;
