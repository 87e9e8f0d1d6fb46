-- Takes a vacant or parked lease and closes it, as an operator or the reconciler does: the
-- ledger row bears the next token and the actor, the attempt is unchanged (R2). finish
-- follows in the same transaction. Fenced by the token if one is given (R3).
-- ?1 job, ?2 token or NULL, ?3 now, ?4 outcome, ?5 next status, ?6 actor, ?7 error, ?8 output
INSERT INTO pacht_attempts (
    job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner, error, output)
SELECT job_id, token + 1, ?3, ?3, attempt, ?4, ?5, ?6, ?7, ?8
FROM pacht_leases
WHERE job_id = ?1
    AND token = coalesce(?2, token)
    AND status IN ('Pending', 'Stuck')
RETURNING token;
