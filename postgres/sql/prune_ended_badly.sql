-- Looks at the next Dead or Cancelled endings by the time they came, found by their partial
-- index, and locks those jobs that are so still; what somebody acts on is passed over.
-- prune.sql looks again.
-- $1 Dead or Cancelled, $2 and $3 after this place, as microseconds since 1970 and job, $4 how
-- many to look at, $5 finished at least this long ago, in microseconds, $6 how many to lock at most
WITH page AS MATERIALIZED (
    SELECT a.job_id, a.token, a.ended_at
    FROM pacht.attempts AS a
    WHERE a.next_status = $1::text
        AND a.next_status IN ('Dead', 'Cancelled')
        AND (a.ended_at, a.job_id) > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3::bigint)
        AND a.ended_at <= statement_timestamp() - $5::bigint * interval '1 microsecond'
    ORDER BY a.ended_at, a.job_id
    LIMIT $4::bigint
),
due AS MATERIALIZED (
    SELECT p.job_id
    FROM page AS p
    WHERE (SELECT true FROM pacht.leases AS l WHERE l.job_id = p.job_id) IS NOT TRUE
        AND (SELECT true FROM pacht.attempts AS b WHERE b.job_id = p.job_id AND b.token > p.token LIMIT 1) IS NOT TRUE
    ORDER BY p.ended_at, p.job_id
    LIMIT $6::bigint
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
    (extract(epoch FROM p.ended_at) * 1000000)::bigint,
    true,
    p.job_id IN (SELECT d.job_id FROM due AS d),
    p.job_id IN (SELECT k.job_id FROM locked AS k)
FROM page AS p
ORDER BY p.ended_at, p.job_id;
