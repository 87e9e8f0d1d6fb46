-- Deletes the attempts of pruned jobs: a job and its history go together.
-- ?1 job ids as a JSON array
DELETE FROM pacht_attempts
WHERE job_id IN (SELECT value FROM json_each(?1));
