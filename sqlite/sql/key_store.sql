-- Stores a key, over one whose life is over: key_find looked in the same write transaction.
-- ?1 scope, ?2 key, ?3 fingerprint, ?4 job, ?5 expires_at
INSERT INTO pacht_keys (scope, key, fingerprint, job_id, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (scope, key) DO UPDATE
SET fingerprint = excluded.fingerprint,
    job_id = excluded.job_id,
    expires_at = excluded.expires_at;
