-- For tests only: moves the times of this table back.
-- ?1 how far in ms
UPDATE pacht_sweeps
SET passed_at = passed_at - ?1,
    next_at = next_at - ?1,
    whole_at = whole_at - ?1;
