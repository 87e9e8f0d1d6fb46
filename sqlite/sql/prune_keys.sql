-- Deletes idempotency keys past their life, a bounded number; one stands on while its job is
-- unfinished (R11).
-- ?1 now, ?2 limit
DELETE FROM pacht_keys
WHERE (scope, key) IN (
    SELECT k.scope, k.key
    FROM pacht_keys AS k
    WHERE k.expires_at <= ?1
        AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = k.job_id)
    LIMIT ?2);
