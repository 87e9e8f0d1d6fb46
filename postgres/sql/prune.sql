-- Deletes locked jobs with all that belongs to them, if they are still finished as asked:
-- never one with a lease, nor one with an effect that has no answer (R10). A job and all its
-- attempts go together, because the highest token must never go alone (R2). Keys keep their own
-- life. Answers how many.
-- $1 jobs, $2 status, $3 finished at least this long ago, in microseconds
WITH sure AS MATERIALIZED (
    SELECT j.job_id
    FROM pacht.jobs AS j
    CROSS JOIN LATERAL (
        SELECT a.next_status, a.ended_at
        FROM pacht.attempts AS a
        WHERE a.job_id = j.job_id
        ORDER BY a.token DESC
        LIMIT 1
    ) AS a
    WHERE j.job_id = ANY ($1::bigint[])
        AND a.next_status = $2::text
        AND a.ended_at <= statement_timestamp() - $3::bigint * interval '1 microsecond'
        AND (SELECT true FROM pacht.leases AS l WHERE l.job_id = j.job_id) IS NOT TRUE
        AND (
            SELECT true
            FROM pacht.effects AS e
            WHERE e.job_id = j.job_id
                AND e.state IN ('called', 'unknown')
            LIMIT 1
        ) IS NOT TRUE
),
history AS (
    DELETE FROM pacht.attempts AS a
    WHERE a.job_id = ANY (ARRAY(SELECT s.job_id FROM sure AS s))
),
reached AS (
    DELETE FROM pacht.steps AS t
    WHERE t.job_id = ANY (ARRAY(SELECT s.job_id FROM sure AS s))
),
called AS (
    DELETE FROM pacht.effects AS e
    WHERE e.job_id = ANY (ARRAY(SELECT s.job_id FROM sure AS s))
),
late AS (
    DELETE FROM pacht.reports AS r
    WHERE r.job_id = ANY (ARRAY(SELECT s.job_id FROM sure AS s))
),
gone AS (
    DELETE FROM pacht.jobs AS j
    WHERE j.job_id = ANY (ARRAY(SELECT s.job_id FROM sure AS s))
    RETURNING j.job_id
)
SELECT count(*)
FROM gone;
