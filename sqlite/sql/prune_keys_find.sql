-- Idempotency keys whose life has ended, of finished jobs. Read before the write lock is taken;
-- prune_keys looks again.
-- ?1 ended at or before, ?2 limit
SELECT k.scope, k.key
FROM pacht_keys AS k
WHERE k.expires_at <= ?1
    AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = k.job_id)
LIMIT ?2;
