-- For tests only: moves the times of this table back. Infinity stays.
-- ?1 how far in ms
UPDATE pacht_watch
SET passed_at = CASE WHEN passed_at >= 253402300799999 THEN passed_at ELSE passed_at - ?1 END,
    next_at = CASE WHEN next_at >= 253402300799999 THEN next_at ELSE next_at - ?1 END;
