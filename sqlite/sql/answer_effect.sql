-- Stores what became of a call to the outside (R10). Guarded by the effect's own state and rev,
-- not by the lease; a success counts whatever the rev, because a call under the same key is the
-- same call. What is final stays. Zero rows: nothing was changed.
-- ?1 job, ?2 name, ?3 now, ?4 rev, ?5 state, ?6 answer, ?7 error, ?8 not before so long from now,
-- in ms
UPDATE pacht_effects
SET state = ?5,
    rev = rev + 1,
    answered_at = ?3,
    not_before = CASE WHEN ?5 = 'ready' THEN ?3 + ?8 END,
    answer = CASE WHEN ?5 = 'succeeded' THEN ?6 END,
    error = CASE WHEN ?5 <> 'succeeded' THEN coalesce(?7, error) END
WHERE job_id = ?1
    AND name = ?2
    AND state IN ('ready', 'called', 'unknown')
    AND (rev = ?4 OR ?5 = 'succeeded');
