-- How far a run has come, by plain SQL over the payments and the queue's tables in one
-- snapshot. It reads them from end to end: for a demonstration, not for a dashboard.
SELECT
    (SELECT count(*) FROM payments) AS payments,
    (SELECT count(*) FROM payments WHERE status = 'paid') AS paid,
    (SELECT count(*) FROM pacht_leases WHERE status = 'Pending') AS pending,
    (SELECT count(*) FROM pacht_leases WHERE status = 'Processing') AS processing,
    (SELECT count(*) FROM pacht_leases WHERE status = 'Stuck') AS stuck,
    (SELECT count(*) FROM pacht_attempts) AS attempts,
    (SELECT count(*) FROM pacht_attempts WHERE next_status = 'Completed') AS completed,
    (SELECT count(*) FROM pacht_attempts WHERE next_status IN ('Dead', 'Cancelled')) AS ended_badly,
    (SELECT count(*) FROM pacht_attempts WHERE outcome = 'Expired') AS expired,
    (SELECT count(*) FROM pacht_reports) AS refused_late;
