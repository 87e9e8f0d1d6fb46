-- For tests only: moves the times of this table back. Infinity stays.
-- ?1 how far in ms
UPDATE pacht_jobs
SET created_at = CASE WHEN created_at >= 253402300799999 THEN created_at ELSE created_at - ?1 END,
    run_at = CASE WHEN run_at >= 253402300799999 THEN run_at ELSE run_at - ?1 END;
