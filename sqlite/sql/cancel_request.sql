-- Asks the holder of a job to end it: rides on the answer of its next renewal.
-- ?1 job
UPDATE pacht_leases
SET cancel_requested = 1,
    rev = rev + 1
WHERE job_id = ?1
    AND status = 'Processing'
RETURNING token;
