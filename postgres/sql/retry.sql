-- Takes a Stuck, Dead or Cancelled job back to Pending, due now: token and attempt go on,
-- crashes become 0, max_attempts becomes the attempt plus the original maximum. Nothing if
-- the job has another status. Comes after lock_job.sql. A lease that somebody is closing at
-- this moment is still a lease: waiting for it to go would revive its job with an old token.
-- $1 job, $2 actor, $3 reason
WITH parked AS MATERIALIZED (
    SELECT l.job_id
    FROM pacht.leases AS l
    WHERE l.job_id = $1::bigint
        AND l.status = 'Stuck'
    FOR UPDATE SKIP LOCKED
),
unparked AS (
    UPDATE pacht.leases AS l
    SET status = 'Pending',
        run_at = statement_timestamp(),
        crashes = 0,
        max_attempts = l.attempt + j.max_attempts,
        rev = l.rev + 1
    FROM parked AS p
    INNER JOIN pacht.jobs AS j ON j.job_id = p.job_id
    WHERE l.job_id = p.job_id
    RETURNING l.job_id
),
ended AS MATERIALIZED (
    SELECT
        a.token,
        CASE WHEN a.outcome IN ('Released', 'Snoozed') THEN a.attempt - 1 ELSE a.attempt END AS attempt,
        a.next_status
    FROM pacht.attempts AS a
    WHERE a.job_id = $1::bigint
    ORDER BY a.token DESC
    LIMIT 1
),
revived AS (
    INSERT INTO pacht.leases (job_id, token, run_at, attempt, max_attempts, max_crashes, ttl_ms, priority, crash_policy, queue, kind)
    SELECT
        j.job_id,
        e.token,
        statement_timestamp(),
        e.attempt,
        e.attempt + j.max_attempts,
        j.max_crashes,
        j.ttl_ms,
        j.priority,
        j.crash_policy,
        j.queue,
        j.kind
    FROM pacht.jobs AS j
    CROSS JOIN ended AS e
    WHERE j.job_id = $1::bigint
        AND e.next_status IN ('Dead', 'Cancelled')
        AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = j.job_id)
    ON CONFLICT (job_id) DO NOTHING
    RETURNING job_id
),
done AS (
    SELECT u.job_id FROM unparked AS u
    UNION ALL
    SELECT r.job_id FROM revived AS r
),
noted AS (
    INSERT INTO pacht.audit (at, actor, act, job_id, reason)
    SELECT statement_timestamp(), $2::text, 'retry', d.job_id, $3::text
    FROM done AS d
)
SELECT 'Pending'
FROM done;
