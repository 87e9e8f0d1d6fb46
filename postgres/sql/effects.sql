-- The effects of one job, by name.
-- $1 job
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
WHERE e.job_id = $1::bigint
ORDER BY e.name;
