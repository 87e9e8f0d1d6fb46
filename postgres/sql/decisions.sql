-- All decisions on one reference, oldest first.
-- $1 reference
SELECT
    d.at,
    d.reference,
    d.class,
    d.rev,
    d.status,
    coalesce(d.job_id, 0),
    d.amount_minor,
    coalesce(d.currency, ''),
    d.wait_us,
    d.actor,
    d.reason,
    coalesce(d.ours::text, ''),
    coalesce(d.theirs::text, '')
FROM pacht.decisions AS d
WHERE d.reference = $1::text
ORDER BY d.decision_id;
