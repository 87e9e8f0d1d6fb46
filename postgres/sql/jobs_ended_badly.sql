-- Lists jobs without args, newest first: those that ended as Dead or Cancelled, found by the
-- partial index, so that completed ones cost nothing. A job that was retried since is not
-- among them.
-- $1 status, $2 kind, $3 queue ('' = any), $4 before this job (0 = from the newest), $5 limit
SELECT
    j.job_id,
    j.kind,
    j.queue,
    j.priority,
    '',
    '',
    a.next_status,
    a.attempt,
    greatest(a.attempt, j.max_attempts),
    0,
    j.max_crashes,
    a.token,
    j.ttl_ms,
    j.crash_policy,
    j.created_at,
    NULL::timestamptz,
    '',
    NULL::timestamptz,
    NULL::timestamptz,
    false,
    a.ended_at
FROM pacht.attempts AS a
CROSS JOIN LATERAL (
    SELECT j.job_id, j.kind, j.queue, j.priority, j.max_attempts, j.max_crashes, j.ttl_ms, j.crash_policy, j.created_at
    FROM pacht.jobs AS j
    WHERE j.job_id = a.job_id
    LIMIT 1
) AS j
WHERE a.next_status = $1::text
    AND a.next_status IN ('Dead', 'Cancelled')
    AND ($2::text = '' OR j.kind = $2::text)
    AND ($3::text = '' OR j.queue = $3::text)
    AND ($4::bigint = 0 OR a.job_id < $4::bigint)
    AND (SELECT true FROM pacht.leases AS l WHERE l.job_id = a.job_id) IS NOT TRUE
    AND (SELECT true FROM pacht.attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token LIMIT 1) IS NOT TRUE
ORDER BY a.job_id DESC
LIMIT $5::bigint;
