-- For tests only: moves the times of this table back. Infinity stays.
-- ?1 how far in ms
UPDATE pacht_workers
SET started_at = CASE WHEN started_at >= 253402300799999 THEN started_at ELSE started_at - ?1 END,
    beat_at = CASE WHEN beat_at >= 253402300799999 THEN beat_at ELSE beat_at - ?1 END,
    last_until = CASE WHEN last_until >= 253402300799999 THEN last_until ELSE last_until - ?1 END,
    stopped_at = CASE WHEN stopped_at >= 253402300799999 THEN stopped_at ELSE stopped_at - ?1 END;
