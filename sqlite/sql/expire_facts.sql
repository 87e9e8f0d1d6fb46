-- What a pass tells of a lease before it closes it.
-- ?1 job, ?2 token
SELECT kind, queue, coalesce(lease_owner, ''), coalesce(lease_until, 0), crashes
FROM pacht_leases
WHERE job_id = ?1
    AND token = ?2
    AND status = 'Processing';
