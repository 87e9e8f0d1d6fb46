-- Says that a worker process lives. No lease depends on it (R6).
-- ?1 owner, ?2 host, ?3 pid, ?4 queues, ?5 kinds, ?6 beat_every_ms, ?7 now, ?8 last_until
INSERT INTO pacht_workers (owner, host, pid, queues, kinds, beat_every_ms, started_at, beat_at, last_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)
ON CONFLICT (owner) DO UPDATE
SET host = excluded.host,
    pid = excluded.pid,
    queues = excluded.queues,
    kinds = excluded.kinds,
    beat_every_ms = excluded.beat_every_ms,
    beat_at = excluded.beat_at,
    last_until = excluded.last_until;
