-- Brings the watcher's next pass forward to the first lease_until that a worker holds.
-- ?1 first lease_until
UPDATE pacht_watch
SET next_at = ?1
WHERE watch_id = 1
    AND next_at > ?1;
