-- Says that a worker process lives. No lease depends on it (R6). A process that has left
-- stays gone: its last beat may come late. Brings the watcher's next pass forward to the
-- first lease_until that the worker holds, but not before the last one has rested: see expire.sql.
-- $1 owner, $2 host, $3 pid, $4 queues, $5 kinds, $6 beat period in milliseconds,
-- $7 its latest lease_until in microseconds since 1970, 0 = none; $8 its earliest, likewise
WITH sooner AS (
    UPDATE pacht.watch AS w
    SET next_at = greatest(
        timestamptz 'epoch' + $8::bigint * interval '1 microsecond',
        w.passed_at + least(20 * w.took_ms::bigint, 30000) * interval '1 millisecond')
    WHERE w.watch_id = 1
        AND $8::bigint > 0
        AND w.next_at > greatest(
            timestamptz 'epoch' + $8::bigint * interval '1 microsecond',
            w.passed_at + least(20 * w.took_ms::bigint, 30000) * interval '1 millisecond')
)
INSERT INTO pacht.workers AS w (owner, host, pid, queues, kinds, beat_every_ms, started_at, beat_at, last_until)
VALUES (
    $1::text,
    $2::text,
    $3::integer,
    $4::text[],
    $5::text[],
    $6::integer,
    statement_timestamp(),
    statement_timestamp(),
    timestamptz 'epoch' + nullif($7::bigint, 0) * interval '1 microsecond'
)
ON CONFLICT (owner) DO UPDATE
SET beat_at = excluded.beat_at,
    queues = excluded.queues,
    kinds = excluded.kinds,
    beat_every_ms = excluded.beat_every_ms,
    last_until = greatest(w.last_until, excluded.last_until);
