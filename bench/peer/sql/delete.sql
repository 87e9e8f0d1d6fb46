-- F2: takes the next $1 jobs and forgets them: what crashes is lost.
DELETE FROM floor_jobs
WHERE job_id = ANY (ARRAY(
    SELECT job_id
    FROM floor_jobs
    WHERE status = 'pending'
      AND run_at <= statement_timestamp()
    ORDER BY priority, run_at, job_id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
))
RETURNING job_id, args;
