-- Deletes rows of worker processes that ended, or whose last beat was, long enough ago. No
-- lease depends on them; a process that was only silent is back with its next beat.
-- $1 how long ago, in microseconds, $2 limit
WITH gone AS (
    DELETE FROM pacht.workers AS w
    WHERE w.owner = ANY (ARRAY(
        SELECT k.owner
        FROM pacht.workers AS k
        WHERE coalesce(k.stopped_at, k.beat_at) <= statement_timestamp() - $1::bigint * interval '1 microsecond'
        LIMIT $2::bigint
        FOR UPDATE SKIP LOCKED))
    RETURNING w.owner
)
SELECT count(*)
FROM gone;
