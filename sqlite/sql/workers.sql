-- Worker processes, the running ones first, then newest first.
SELECT owner, host, pid, queues, kinds, beat_every_ms, last_until, started_at, beat_at, stopped_at
FROM pacht_workers
ORDER BY stopped_at IS NOT NULL, started_at DESC, owner;
