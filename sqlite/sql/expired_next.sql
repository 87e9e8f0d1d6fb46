-- The earliest end of a lease that is not over yet: when the next pass is due.
-- ?1 now
SELECT min(lease_until)
FROM pacht_leases
WHERE status = 'Processing'
    AND lease_until >= ?1;
