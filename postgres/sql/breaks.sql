-- A page of breaks, ended ones too, by reference, then class.
-- $1 status, $2 class ('' = any), $3 and $4 after this reference and class, $5 limit
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
WHERE (b.reference, b.class) > ($3::text, $4::text)
    AND ($1::text = '' OR b.status = $1::text)
    AND ($2::text = '' OR b.class = $2::text)
ORDER BY b.reference, b.class
LIMIT $5::bigint;
