-- Deletes the reports of pruned jobs: a job and its history go together.
-- ?1 job ids as a JSON array
DELETE FROM pacht_reports
WHERE job_id IN (SELECT value FROM json_each(?1));
