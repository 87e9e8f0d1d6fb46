-- Locks a job against everybody who acts on it by hand or prunes it, so that the statement
-- after this one sees what they committed.
-- $1 job
SELECT j.job_id
FROM pacht.jobs AS j
WHERE j.job_id = $1::bigint
FOR UPDATE;
