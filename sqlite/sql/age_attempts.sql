-- For tests only: moves the times of this table back. Infinity stays.
-- ?1 how far in ms
UPDATE pacht_attempts
SET claimed_at = CASE WHEN claimed_at >= 253402300799999 THEN claimed_at ELSE claimed_at - ?1 END,
    ended_at = CASE WHEN ended_at >= 253402300799999 THEN ended_at ELSE ended_at - ?1 END,
    next_run_at = CASE WHEN next_run_at >= 253402300799999 THEN next_run_at ELSE next_run_at - ?1 END;
