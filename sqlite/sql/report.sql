-- Keeps an outcome that came after its lease was closed by somebody else (R7).
-- ?1 job, ?2 token, ?3 now, ?4 outcome, ?5 error
INSERT INTO pacht_reports (job_id, token, at, outcome, owner, error)
SELECT job_id, token, ?3, ?4, owner, ?5
FROM pacht_attempts
WHERE job_id = ?1
    AND token = ?2
    AND outcome <> ?4
ON CONFLICT (job_id, token, outcome) DO NOTHING;
