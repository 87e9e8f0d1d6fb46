-- How far a run has come, by plain SQL over the payments and the queue's tables in one
-- snapshot, but for the reconciler's own jobs, of which there is always one. It reads them from
-- end to end: for a demonstration, not for a dashboard.
SELECT
    (SELECT count(*) FROM payments) AS payments,
    (SELECT count(*) FROM payments WHERE status = 'succeeded') AS paid,
    (SELECT count(*) FROM payments WHERE status = 'pending') AS unpaid,
    (SELECT coalesce(max(CAST(unixepoch('subsec') * 1000 AS INTEGER) - created_at), 0) FROM payments WHERE status = 'pending') AS oldest_ms,
    (SELECT count(*) FROM pacht_leases WHERE status = 'Pending' AND kind NOT LIKE '%reconcile') AS pending,
    (SELECT count(*) FROM pacht_leases WHERE status = 'Processing' AND kind NOT LIKE '%reconcile') AS processing,
    (SELECT count(*) FROM pacht_leases WHERE status = 'Stuck') AS stuck,
    (SELECT count(*) FROM pacht_attempts) AS attempts,
    (SELECT count(*) FROM pacht_attempts a JOIN pacht_jobs j ON j.job_id = a.job_id WHERE a.next_status = 'Completed' AND j.kind = 'charge') AS completed,
    (SELECT count(*) FROM pacht_attempts a JOIN pacht_jobs j ON j.job_id = a.job_id WHERE a.next_status IN ('Dead', 'Cancelled') AND j.kind = 'charge') AS ended_badly,
    (SELECT count(*) FROM pacht_attempts WHERE outcome = 'Expired') AS expired,
    (SELECT count(*) FROM pacht_attempts WHERE outcome = 'Unknown') AS unknown,
    (SELECT count(*) FROM pacht_reports) AS refused_late;
