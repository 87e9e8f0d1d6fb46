-- For tests only: moves the times of this table back.
-- ?1 how far in ms
UPDATE pacht_decisions
SET at = at - ?1;
