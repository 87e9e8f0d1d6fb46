-- For tests only: moves the times of this table back.
-- ?1 how far in ms
UPDATE pacht_breaks
SET first_seen = first_seen - ?1,
    last_seen = last_seen - ?1,
    next_at = next_at - ?1;
