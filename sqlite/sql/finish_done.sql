-- Ends the leases that settle_done has just closed: held ones whose very token is in the
-- ledger (R3, R4).
-- ?1 job ids as a JSON array
DELETE FROM pacht_leases
WHERE job_id IN (SELECT value FROM json_each(?1))
    AND status = 'Processing'
    AND EXISTS (
        SELECT 1
        FROM pacht_attempts AS a
        WHERE a.job_id = pacht_leases.job_id
            AND a.token = pacht_leases.token);
