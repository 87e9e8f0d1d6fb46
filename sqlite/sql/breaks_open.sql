-- A page of open breaks, by reference, then class: from their partial index, whatever the history.
-- ?1 status, ?2 class ('' = any), ?3 and ?4 after this reference and class, ?5 limit, ?6 due ones only
SELECT reference, class, rev, status, job_id, amount_minor, currency, checks, first_seen, last_seen, next_at, ours, theirs
FROM pacht_breaks INDEXED BY pacht_breaks_open
WHERE status IN ('waiting', 'person')
    AND (reference, class) > (?3, ?4)
    AND (?1 = '' OR status = ?1)
    AND (?2 = '' OR class = ?2)
    AND (NOT ?6 OR (status = 'waiting' AND next_at <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER)))
ORDER BY reference, class
LIMIT ?5;
