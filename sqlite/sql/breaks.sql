-- A page of breaks, ended ones too, by reference, then class.
-- ?1 status, ?2 class ('' = any), ?3 and ?4 after this reference and class, ?5 limit
SELECT reference, class, rev, status, job_id, amount_minor, currency, checks, first_seen, last_seen, next_at, ours, theirs
FROM pacht_breaks
WHERE (reference, class) > (?3, ?4)
    AND (?1 = '' OR status = ?1)
    AND (?2 = '' OR class = ?2)
ORDER BY reference, class
LIMIT ?5;
