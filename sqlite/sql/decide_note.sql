-- Appends a decision, as the break stands after it.
-- ?1 reference, ?2 class, ?3 wait in ms, ?4 who, ?5 why
INSERT INTO pacht_decisions (at, reference, class, rev, status, job_id, amount_minor, currency, wait_ms, actor, reason, ours, theirs)
SELECT last_seen, reference, class, rev - 1, status, job_id, amount_minor, currency, ?3, ?4, ?5, ours, theirs
FROM pacht_breaks
WHERE reference = ?1
    AND class = ?2;
