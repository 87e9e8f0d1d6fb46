-- How far a run has come, by plain SQL over the payments and the queue's tables in one
-- snapshot, but for the reconciler's own jobs, of which there is always one. It reads them from
-- end to end: for a demonstration, not for a dashboard.
SELECT
    (SELECT count(*) FROM pacht.payments) AS payments,
    (SELECT count(*) FROM pacht.payments WHERE status = 'succeeded') AS paid,
    (SELECT count(*) FROM pacht.payments WHERE status = 'pending') AS unpaid,
    (SELECT coalesce(max((extract(epoch FROM statement_timestamp()) * 1000)::bigint - (extract(epoch FROM created_at) * 1000)::bigint), 0) FROM pacht.payments WHERE status = 'pending') AS oldest_ms,
    (SELECT count(*) FROM pacht.leases WHERE status = 'Pending' AND kind NOT LIKE '%reconcile') AS pending,
    (SELECT count(*) FROM pacht.leases WHERE status = 'Processing' AND kind NOT LIKE '%reconcile') AS processing,
    (SELECT count(*) FROM pacht.leases WHERE status = 'Stuck') AS stuck,
    (SELECT count(*) FROM pacht.attempts) AS attempts,
    (SELECT count(*) FROM pacht.attempts a JOIN pacht.jobs j ON j.job_id = a.job_id WHERE a.next_status = 'Completed' AND j.kind = 'charge') AS completed,
    (SELECT count(*) FROM pacht.attempts a JOIN pacht.jobs j ON j.job_id = a.job_id WHERE a.next_status IN ('Dead', 'Cancelled') AND j.kind = 'charge') AS ended_badly,
    (SELECT count(*) FROM pacht.attempts WHERE outcome = 'Expired') AS expired,
    (SELECT count(*) FROM pacht.attempts WHERE outcome = 'Unknown') AS unknown,
    (SELECT count(*) FROM pacht.reports) AS refused_late;
