-- The effects of one job, by name.
-- ?1 job
SELECT
    job_id,
    name,
    state,
    rev,
    key,
    reference,
    request,
    token,
    calls,
    answer,
    error,
    first_called_at,
    called_at,
    answered_at,
    not_before
FROM pacht_effects
WHERE job_id = ?1
ORDER BY name;
