-- Leases past their time, in job order: read before the write lock is taken, because there is
-- no index to find them by. A lease without an end cannot be stored; if one stands there all
-- the same, it counts as expired.
-- ?1 now, ?2 after, ?3 limit
SELECT job_id, token
FROM pacht_leases
WHERE job_id > ?2
    AND status = 'Processing'
    AND (lease_until < ?1 OR lease_until IS NULL OR lease_until >= 253402300799999)
ORDER BY job_id
LIMIT ?3;
