-- What became of a lease: where the job stands now, and how the ledger says that this very
-- lease was closed. No row: the job is gone.
-- ?1 job, ?2 token
SELECT
    coalesce(l.status, a.next_status, '') AS status,
    coalesce(l.token, a.token, 0) AS token,
    coalesce(l.lease_owner, a.owner, '') AS owner,
    l.lease_until,
    m.outcome,
    m.next_status,
    m.late
FROM pacht_jobs AS j
LEFT JOIN pacht_leases AS l ON l.job_id = j.job_id
LEFT JOIN pacht_attempts AS a ON a.job_id = j.job_id
    AND a.token = (SELECT max(b.token) FROM pacht_attempts AS b WHERE b.job_id = j.job_id)
LEFT JOIN pacht_attempts AS m ON m.job_id = j.job_id AND m.token = ?2
WHERE j.job_id = ?1;
