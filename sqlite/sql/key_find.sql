-- The job that an idempotency key stands for, and whether the content is the same (R11). A
-- key past its life stands on while its job is unfinished.
-- ?1 scope, ?2 key, ?3 fingerprint, ?4 now
SELECT
    k.job_id,
    k.fingerprint = ?3 AS same
FROM pacht_keys AS k
WHERE k.scope = ?1
    AND k.key = ?2
    AND (k.expires_at > ?4 OR EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = k.job_id));
