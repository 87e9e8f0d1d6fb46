-- Worker processes, the running ones first, then newest first.
SELECT w.owner, w.host, w.pid, w.queues, w.kinds, w.beat_every_ms, w.started_at, w.beat_at, w.last_until, w.stopped_at
FROM pacht.workers AS w
ORDER BY w.stopped_at IS NOT NULL, w.started_at DESC, w.owner;
