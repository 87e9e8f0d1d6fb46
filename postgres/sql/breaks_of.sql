-- All breaks of one reference, by class.
-- $1 reference
SELECT
    b.reference,
    b.class,
    b.rev,
    b.status,
    coalesce(b.job_id, 0),
    b.amount_minor,
    coalesce(b.currency, ''),
    b.checks,
    b.first_seen,
    b.last_seen,
    b.next_at,
    coalesce(b.ours::text, ''),
    coalesce(b.theirs::text, '')
FROM pacht.breaks AS b
WHERE b.reference = $1::text
ORDER BY b.class;
