-- The newest job, or 0: what the benchmark makes comes after it.
SELECT coalesce(max(j.job_id), 0)
FROM pacht_jobs AS j;
