-- For tests only: moves the times of this table back. Infinity stays.
-- ?1 how far in ms
UPDATE pacht_keys
SET expires_at = CASE WHEN expires_at >= 253402300799999 THEN expires_at ELSE expires_at - ?1 END;
