-- Ends the lease of a job that is finished. The status it must have is in the statement (R3).
-- ?1 job, ?2 token, ?3 whether it is held; else it is vacant or parked
DELETE FROM pacht_leases
WHERE job_id = ?1
    AND token = ?2
    AND CASE WHEN ?3 THEN status = 'Processing' ELSE status IN ('Pending', 'Stuck') END;
