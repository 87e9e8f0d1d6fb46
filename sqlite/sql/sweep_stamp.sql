-- Stamps a page in its own transaction, so that one which fails is not recorded.
-- ?1 target, ?2 by, ?3 now, ?4 removed, ?5 and ?6 how far, ?7 looking, ?8 whole, ?9 cost in
-- microseconds, ?10 when the next page is due, ?11 when the next look may begin at the start,
-- negative = as it was
UPDATE pacht_sweeps
SET passed_at = ?3,
    passed_by = ?2,
    removed = removed + ?4,
    after_us = ?5,
    after_id = ?6,
    looking = ?7,
    whole = ?8,
    cost_us = ?9,
    next_at = ?10,
    whole_at = CASE WHEN ?11 < 0 THEN whole_at ELSE ?11 END
WHERE target = ?1;
