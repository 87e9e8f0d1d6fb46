-- Deletes the effects of pruned jobs, all of which have an answer: a job and its history go
-- together.
-- ?1 job ids as a JSON array
DELETE FROM pacht_effects
WHERE job_id IN (SELECT value FROM json_each(?1));
