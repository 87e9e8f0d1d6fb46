-- Records the intent to make a call to the outside (R10). Its lease was renewed in the same
-- transaction, which fences it (R3). Zero rows: it may not be called now, and is left as it is.
-- ?1 job, ?2 token, ?3 now, ?4 name, ?5 key, ?6 reference, ?7 request, ?8 rev of the open effect
-- that may be called again
INSERT INTO pacht_effects AS e (job_id, name, first_called_at, key, reference, request, token, called_at)
VALUES (?1, ?4, ?3, ?5, ?6, ?7, ?2, ?3)
ON CONFLICT (job_id, name) DO UPDATE
SET state = 'called',
    rev = e.rev + 1,
    calls = e.calls + 1,
    token = excluded.token,
    called_at = excluded.called_at,
    answered_at = NULL,
    not_before = NULL
WHERE (e.state = 'ready' AND e.not_before <= excluded.called_at)
    OR (e.state IN ('called', 'unknown') AND e.rev = ?8);
