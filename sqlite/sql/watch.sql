-- When the Stuck Watcher last made a pass.
SELECT passed_at, passed_by, took_ms, next_at
FROM pacht_watch
WHERE watch_id = 1;
