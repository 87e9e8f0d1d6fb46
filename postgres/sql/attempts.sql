-- The ledger of one job, oldest first.
-- $1 job
SELECT
    a.job_id,
    a.token,
    a.attempt,
    a.owner,
    a.claimed_at,
    a.ended_at,
    a.late,
    a.outcome,
    a.next_status,
    a.next_run_at,
    coalesce(a.error, ''),
    coalesce(a.output::text, '')
FROM pacht.attempts AS a
WHERE a.job_id = $1::bigint
ORDER BY a.token;
