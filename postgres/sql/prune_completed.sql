-- Looks at the next jobs by id, and locks those that completed long enough ago; what somebody
-- acts on is passed over. A job that is younger than that cannot have completed before, and
-- ids grow with time: so nothing behind the first young one need be looked at, and neither an
-- index on ended_at nor a walk through the history is needed. prune.sql looks again.
-- $1 after this job, $2 how many to look at, $3 finished at least this long ago, in
-- microseconds, $4 how many to lock at most
WITH page AS MATERIALIZED (
    SELECT j.job_id, j.created_at <= statement_timestamp() - $3::bigint * interval '1 microsecond' AS old
    FROM pacht.jobs AS j
    WHERE j.job_id > $1::bigint
    ORDER BY j.job_id
    LIMIT $2::bigint
),
due AS MATERIALIZED (
    SELECT p.job_id
    FROM page AS p
    CROSS JOIN LATERAL (
        SELECT a.next_status, a.ended_at
        FROM pacht.attempts AS a
        WHERE a.job_id = p.job_id
        ORDER BY a.token DESC
        LIMIT 1
    ) AS a
    WHERE p.old
        AND a.next_status = 'Completed'
        AND a.ended_at <= statement_timestamp() - $3::bigint * interval '1 microsecond'
    ORDER BY p.job_id
    LIMIT $4::bigint
),
locked AS MATERIALIZED (
    SELECT j.job_id
    FROM pacht.jobs AS j
    WHERE j.job_id = ANY (ARRAY(SELECT d.job_id FROM due AS d))
    ORDER BY j.job_id
    FOR UPDATE SKIP LOCKED
)
SELECT
    p.job_id,
    0::bigint,
    p.old,
    p.job_id IN (SELECT d.job_id FROM due AS d),
    p.job_id IN (SELECT k.job_id FROM locked AS k)
FROM page AS p
ORDER BY p.job_id;
