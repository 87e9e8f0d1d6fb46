-- Brings a break to the state that a decision says. Nothing if it has another rev than the
-- decider saw (R3), or is with a person and would go back to waiting. A break that had ended is
-- opened again. decide_note follows in the same transaction.
-- ?1 reference, ?2 class, ?3 rev (0 = it was not there), ?4 status, ?5 job or NULL, ?6 amount at
-- risk, ?7 currency or NULL, ?8 ours, ?9 theirs, ?10 now, ?11 when to ask again or NULL,
-- ?12 first seen or NULL
INSERT INTO pacht_breaks (
    reference, class, rev, status, job_id, amount_minor, currency, checks, first_seen, last_seen, next_at, ours, theirs)
SELECT ?1, ?2, 1, ?4, ?5, ?6, ?7, 1, min(?10, coalesce(?12, ?10)), ?10, ?11, ?8, ?9
WHERE ?3 = 0
    OR EXISTS (SELECT 1 FROM pacht_breaks AS e WHERE e.reference = ?1 AND e.class = ?2)
ON CONFLICT (reference, class) DO UPDATE
SET rev = rev + 1,
    status = excluded.status,
    job_id = excluded.job_id,
    amount_minor = excluded.amount_minor,
    currency = excluded.currency,
    checks = CASE WHEN status IN ('waiting', 'person') THEN checks + 1 ELSE 1 END,
    first_seen = CASE WHEN status IN ('waiting', 'person') THEN first_seen ELSE excluded.first_seen END,
    last_seen = excluded.last_seen,
    next_at = excluded.next_at,
    ours = excluded.ours,
    theirs = excluded.theirs
WHERE rev = ?3
    AND NOT (status = 'person' AND excluded.status = 'waiting')
RETURNING reference, class, rev, status, job_id, amount_minor, currency, checks, first_seen, last_seen, next_at, ours, theirs;
