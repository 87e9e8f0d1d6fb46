-- Deletes rows of worker processes that ended, or whose last beat was, long enough ago. No
-- lease depends on them; a process that was only silent is back with its next beat.
-- ?1 at or before, ?2 limit
DELETE FROM pacht_workers
WHERE owner IN (
    SELECT w.owner
    FROM pacht_workers AS w
    WHERE coalesce(w.stopped_at, w.beat_at) <= ?1
    LIMIT ?2);
