-- For tests only: moves the times of this table back.
-- ?1 how far in ms
UPDATE pacht_effects
SET first_called_at = first_called_at - ?1,
    called_at = called_at - ?1,
    answered_at = answered_at - ?1,
    not_before = not_before - ?1;
