-- Whether a pass is due: at next_at, or a period after the last pass, or because a worker
-- missed its beat and its last lease ended after that pass. And when the next one is, if not.
-- ?1 now, ?2 period in ms
SELECT
    next_at <= ?1
        OR coalesce(passed_at, 0) + ?2 <= ?1
        OR EXISTS (
            SELECT 1
            FROM pacht_workers
            WHERE stopped_at IS NULL
                AND beat_at + 3 * beat_every_ms < ?1
                AND last_until < ?1
                AND last_until >= coalesce(passed_at, 0)) AS due,
    min(next_at, coalesce(passed_at, 0) + ?2) - ?1 AS next_in
FROM pacht_watch
WHERE watch_id = 1;
