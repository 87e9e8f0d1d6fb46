-- For tests only: moves the times of this table back. Infinity stays.
-- ?1 how far in ms
UPDATE pacht_leases
SET run_at = CASE WHEN run_at >= 253402300799999 THEN run_at ELSE run_at - ?1 END,
    claimed_at = CASE WHEN claimed_at >= 253402300799999 THEN claimed_at ELSE claimed_at - ?1 END,
    lease_until = CASE WHEN lease_until >= 253402300799999 THEN lease_until ELSE lease_until - ?1 END;
