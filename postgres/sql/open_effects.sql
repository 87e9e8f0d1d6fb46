-- Effects that may have happened and nobody knows: unknown ones, and called ones whose lease is
-- closed or past its time. By their partial index, in order of job and name.
-- $1 and $2 after this job and name, $3 how many
SELECT
    e.job_id,
    e.name,
    e.state,
    e.rev,
    e.key,
    e.reference,
    coalesce(e.request::text, ''),
    e.token,
    e.calls,
    coalesce(e.answer::text, ''),
    coalesce(e.error, ''),
    e.first_called_at,
    e.called_at,
    e.answered_at,
    e.not_before
FROM pacht.effects AS e
WHERE e.state IN ('called', 'unknown')
    AND (e.job_id, e.name) > ($1::bigint, $2::text)
    AND (e.state = 'unknown' OR (
        SELECT true
        FROM pacht.leases AS l
        WHERE l.job_id = e.job_id
            AND l.token = e.token
            AND l.status = 'Processing'
            AND l.lease_until > statement_timestamp()
    ) IS NOT TRUE)
ORDER BY e.job_id, e.name
LIMIT $3::bigint;
