-- Deletes rows of worker processes that ended, or whose last beat was, long enough ago. No
-- lease depends on them; a process that was only silent is back with its next beat. What an owner has
-- made void stands for a day at least: no claim is on its way for so long.
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
),
arrived AS (
    DELETE FROM pacht.voided AS v
    WHERE v.owner = ANY (ARRAY(
        SELECT k.owner
        FROM pacht.voided AS k
        WHERE k.at <= statement_timestamp() - greatest($1::bigint * interval '1 microsecond', interval '1 day')
        LIMIT $2::bigint
        FOR UPDATE SKIP LOCKED))
        AND v.at <= statement_timestamp() - greatest($1::bigint * interval '1 microsecond', interval '1 day')
)
SELECT count(*)
FROM gone;
