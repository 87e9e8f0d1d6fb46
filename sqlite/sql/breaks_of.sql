-- All breaks of one reference, by class.
-- ?1 reference
SELECT reference, class, rev, status, job_id, amount_minor, currency, checks, first_seen, last_seen, next_at, ours, theirs
FROM pacht_breaks
WHERE reference = ?1
ORDER BY class;
