-- Deletes idempotency keys past their life; one stands on while its job is unfinished (R11).
-- ?1 keys as a JSON array of [scope, key], ?2 ended at or before
DELETE FROM pacht_keys
WHERE (scope, key) IN (
    SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]')
    FROM json_each(?1) AS j)
    AND expires_at <= ?2
    AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = pacht_keys.job_id);
