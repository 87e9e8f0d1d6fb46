-- Stamps a pass, in the transaction of the pass: one that dies leaves no trace.
-- ?1 now, ?2 by, ?3 took in ms, ?4 next_at
UPDATE pacht_watch
SET passed_at = ?1,
    passed_by = ?2,
    took_ms = ?3,
    next_at = ?4
WHERE watch_id = 1;
