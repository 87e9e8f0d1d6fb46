-- When the Stuck Watcher last made a pass, and when the next one is due.
SELECT w.passed_at, coalesce(w.passed_by, ''), w.took_ms, CASE WHEN isfinite(w.next_at) THEN w.next_at END
FROM pacht.watch AS w
WHERE w.watch_id = 1;
