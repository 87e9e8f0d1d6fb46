-- What the jobs that were claimed just now are to do, with args. None of it ever changes.
-- ?1 job ids as a JSON array
SELECT j.job_id, j.kind, j.args, j.metadata, j.max_crashes, j.crash_policy, j.created_at
FROM json_each(?1) AS c
CROSS JOIN pacht_jobs AS j ON j.job_id = c.value;
