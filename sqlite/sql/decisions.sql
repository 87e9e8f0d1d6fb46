-- All decisions on one reference, oldest first.
-- ?1 reference
SELECT at, reference, class, rev, status, job_id, amount_minor, currency, wait_ms, actor, reason, ours, theirs
FROM pacht_decisions
WHERE reference = ?1
ORDER BY decision_id;
