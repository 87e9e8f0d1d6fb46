-- Effects that may have happened and nobody knows: unknown ones, and called ones whose lease is
-- closed or past its time. By their partial index, in order of job and name.
-- ?1 and ?2 after this job and name, ?3 how many, ?4 now
SELECT
    e.job_id,
    e.name,
    e.state,
    e.rev,
    e.key,
    e.reference,
    e.request,
    e.token,
    e.calls,
    e.answer,
    e.error,
    e.first_called_at,
    e.called_at,
    e.answered_at,
    e.not_before
FROM pacht_effects AS e
WHERE e.state IN ('called', 'unknown')
    AND (e.job_id, e.name) > (?1, ?2)
    AND (e.state = 'unknown' OR NOT EXISTS (
        SELECT 1
        FROM pacht_leases AS l
        WHERE l.job_id = e.job_id
            AND l.token = e.token
            AND l.status = 'Processing'
            AND l.lease_until >= ?4))
ORDER BY e.job_id, e.name
LIMIT ?3;
