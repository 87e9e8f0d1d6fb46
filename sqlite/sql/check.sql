-- What stands in the tables and no rule allows, all from one snapshot. Reads them from end to
-- end. "Last" is a job's ledger row with the highest token.
WITH last AS (
    SELECT a.job_id, a.token, a.outcome, a.next_status, a.ended_at
    FROM pacht_attempts AS a
    WHERE NOT EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
)
SELECT 'R1' AS rule, j.job_id AS job_id,
    'the job has neither a lease nor a closing that finished it; its last ledger row says ' || coalesce(a.next_status, 'nothing') AS detail
FROM pacht_jobs AS j
LEFT JOIN last AS a ON a.job_id = j.job_id
WHERE NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = j.job_id)
    AND coalesce(a.next_status, '') NOT IN ('Completed', 'Dead', 'Cancelled')
UNION ALL
SELECT 'R1', l.job_id, 'the lease has no job'
FROM pacht_leases AS l
WHERE NOT EXISTS (SELECT 1 FROM pacht_jobs AS j WHERE j.job_id = l.job_id)
UNION ALL
SELECT 'R1', l.job_id,
    'the job is ' || l.status || ', and finished as ' || a.next_status || ' under token ' || a.token
FROM pacht_leases AS l
JOIN last AS a ON a.job_id = l.job_id
WHERE a.next_status = 'Completed'
    OR (a.next_status IN ('Dead', 'Cancelled')
        AND NOT EXISTS (
            SELECT 1
            FROM pacht_audit AS u
            WHERE u.job_id = l.job_id AND u.act = 'retry' AND u.at >= a.ended_at))
UNION ALL
SELECT 'R1', l.job_id, 'the row of a ' || l.status || ' lease is impossible: owner ' || coalesce(l.lease_owner, 'none')
    || ', claimed_at ' || coalesce(l.claimed_at, 'none') || ', lease_until ' || coalesce(l.lease_until, 'none')
FROM pacht_leases AS l
WHERE l.status NOT IN ('Pending', 'Processing', 'Stuck')
    OR (l.status = 'Processing') <> (l.lease_owner IS NOT NULL)
    OR (l.status = 'Processing') <> (l.claimed_at IS NOT NULL)
    OR (l.status = 'Processing') <> (l.lease_until IS NOT NULL)
    OR coalesce(l.lease_until, 0) >= 253402300799999
    OR (l.status = 'Stuck') <> (l.run_at = 253402300799999)
    OR (l.status <> 'Processing' AND l.cancel_requested)
UNION ALL
SELECT 'R2', l.job_id, 'the lease has token ' || l.token || ', behind token ' || a.token || ' of the ledger'
FROM pacht_leases AS l
JOIN last AS a ON a.job_id = l.job_id
WHERE a.token > l.token
UNION ALL
SELECT 'R2', a.job_id, 'the ledger has token ' || a.token || ' and not the one before it'
FROM pacht_attempts AS a
WHERE a.token < 1
    OR (EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token < a.token)
        AND NOT EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token = a.token - 1))
UNION ALL
SELECT 'R2', x.job_id, 'history without its job in ' || x.what
FROM (
    SELECT job_id, 'attempts' AS what FROM pacht_attempts
    UNION SELECT job_id, 'steps' FROM pacht_steps
    UNION SELECT job_id, 'effects' FROM pacht_effects
    UNION SELECT job_id, 'reports' FROM pacht_reports) AS x
WHERE NOT EXISTS (SELECT 1 FROM pacht_jobs AS j WHERE j.job_id = x.job_id)
UNION ALL
SELECT 'R3', s.job_id, 'the step ' || s.name || ' has token ' || s.token || ', which was never taken'
FROM pacht_steps AS s
WHERE NOT EXISTS (SELECT 1 FROM pacht_attempts AS a WHERE a.job_id = s.job_id AND a.token = s.token)
    AND NOT EXISTS (SELECT 1 FROM pacht_leases AS l WHERE l.job_id = s.job_id AND l.token = s.token)
    AND EXISTS (SELECT 1 FROM pacht_jobs AS j WHERE j.job_id = s.job_id)
UNION ALL
SELECT 'R3', e.job_id, 'the effect ' || e.name || ' has token ' || e.token || ', which was never taken'
FROM pacht_effects AS e
WHERE NOT EXISTS (SELECT 1 FROM pacht_attempts AS a WHERE a.job_id = e.job_id AND a.token = e.token)
    AND NOT EXISTS (
        SELECT 1
        FROM pacht_leases AS l
        WHERE l.job_id = e.job_id AND l.token = e.token AND l.status = 'Processing')
UNION ALL
SELECT 'R10', e.job_id, 'the effect ' || e.name || ' has no answer (' || e.state || '), and its holder completed the job'
FROM pacht_effects AS e
WHERE e.state IN ('called', 'unknown')
    AND EXISTS (SELECT 1 FROM pacht_attempts AS a WHERE a.job_id = e.job_id AND a.outcome = 'Completed')
UNION ALL
SELECT 'R4', l.job_id, 'the lease is held under token ' || l.token || ', which the ledger has closed'
FROM pacht_leases AS l
WHERE l.status = 'Processing'
    AND EXISTS (SELECT 1 FROM pacht_attempts AS a WHERE a.job_id = l.job_id AND a.token = l.token)
UNION ALL
SELECT 'R4', l.job_id, 'the lease is ' || l.status || ' with token ' || l.token || ', and the ledger ends at ' || coalesce(a.token, 0)
FROM pacht_leases AS l
LEFT JOIN last AS a ON a.job_id = l.job_id
WHERE coalesce(a.token, 0) < l.token - (l.status = 'Processing')
UNION ALL
SELECT 'R4', l.job_id, 'the lease is ' || l.status || ', and its last closing says ' || a.next_status
FROM pacht_leases AS l
JOIN last AS a ON a.job_id = l.job_id AND a.token = l.token
WHERE a.next_status IN ('Pending', 'Processing', 'Stuck')
    AND a.next_status <> l.status
    AND l.status <> 'Processing'
    AND NOT (l.status = 'Pending' AND a.next_status = 'Stuck' AND EXISTS (
        SELECT 1
        FROM pacht_audit AS u
        WHERE u.job_id = l.job_id AND u.act = 'retry' AND u.at >= a.ended_at))
UNION ALL
SELECT 'R4', a.job_id, 'the ledger goes on after the job was Completed under token ' || a.token
FROM pacht_attempts AS a
WHERE a.next_status = 'Completed'
    AND EXISTS (SELECT 1 FROM pacht_attempts AS b WHERE b.job_id = a.job_id AND b.token > a.token)
UNION ALL
SELECT 'R4', a.job_id, 'outcome ' || a.outcome || ' under token ' || a.token || ' cannot lead to ' || a.next_status
FROM pacht_attempts AS a
WHERE NOT CASE a.outcome
    WHEN 'Completed' THEN a.next_status = 'Completed'
    WHEN 'Failed' THEN a.next_status IN ('Pending', 'Dead', 'Cancelled')
    WHEN 'Expired' THEN a.next_status IN ('Pending', 'Processing', 'Stuck', 'Cancelled')
    WHEN 'Released' THEN a.next_status IN ('Pending', 'Cancelled')
    WHEN 'Snoozed' THEN a.next_status IN ('Pending', 'Cancelled')
    WHEN 'Cancelled' THEN a.next_status = 'Cancelled'
    WHEN 'Resolved' THEN a.next_status IN ('Completed', 'Dead')
    WHEN 'Unknown' THEN 1
    ELSE 0
END
UNION ALL
SELECT 'R10', a.job_id, 'the outcome under token ' || a.token || ' is Unknown, and the job became ' || a.next_status
FROM pacht_attempts AS a
WHERE a.outcome = 'Unknown'
    AND a.next_status <> 'Stuck'
UNION ALL
SELECT 'R5', l.job_id, 'attempt ' || l.attempt || ' of ' || l.max_attempts || ' under token ' || l.token || ' of a ' || l.status || ' lease'
FROM pacht_leases AS l
WHERE l.attempt < 0
    OR l.attempt > l.max_attempts
    OR l.attempt > l.token
    OR (l.status = 'Pending' AND l.attempt >= l.max_attempts)
    OR (l.status = 'Processing' AND l.attempt < 1)
UNION ALL
SELECT 'R5', a.job_id, 'the ledger counts attempt ' || a.attempt || ' under token ' || a.token
FROM pacht_attempts AS a
WHERE a.attempt < 0
    OR a.attempt > a.token
UNION ALL
SELECT 'R6', l.job_id, 'TTL, crash policy, queue, kind or priority of the lease are not those of the job'
FROM pacht_leases AS l
JOIN pacht_jobs AS j ON j.job_id = l.job_id
WHERE l.ttl_ms <> j.ttl_ms
    OR l.crash_policy <> j.crash_policy
    OR l.queue <> j.queue
    OR l.kind <> j.kind
    OR l.priority <> j.priority
    OR l.max_crashes <> j.max_crashes
UNION ALL
SELECT 'R7', a.job_id, 'the closing under token ' || a.token || ' is late, and is no settle: ' || a.outcome
FROM pacht_attempts AS a
WHERE a.late
    AND a.outcome IN ('Expired', 'Resolved')
UNION ALL
SELECT 'R7', r.job_id, 'the report ' || r.outcome || ' has token ' || r.token || ', which was never closed otherwise'
FROM pacht_reports AS r
WHERE EXISTS (SELECT 1 FROM pacht_jobs AS j WHERE j.job_id = r.job_id)
    AND NOT EXISTS (
        SELECT 1
        FROM pacht_attempts AS a
        WHERE a.job_id = r.job_id AND a.token = r.token AND a.outcome <> r.outcome)
UNION ALL
SELECT 'R9', l.job_id, 'the lease is ' || l.status || ' after ' || l.crashes || ' crashes in a row, and the cap is ' || l.max_crashes
FROM pacht_leases AS l
WHERE l.crashes < 0
    OR (l.status <> 'Stuck' AND l.crashes >= l.max_crashes)
UNION ALL
SELECT 'R11', k.job_id, 'an idempotency key has a fingerprint of ' || length(k.fingerprint) || ' bytes'
FROM pacht_keys AS k
WHERE length(k.fingerprint) <> 32
UNION ALL
SELECT 'R11', k.job_id, 'an idempotency key stands for a job that was never stored'
FROM pacht_keys AS k
WHERE k.job_id > coalesce((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = 'pacht_jobs'), 0)
ORDER BY 2, 1;
