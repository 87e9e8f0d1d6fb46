-- What the tables hold and no rule allows; at most 100 rows of each kind. One statement, so
-- one snapshot. Each table is read once, in the order of its key.
WITH ledger AS (
    SELECT
        a.job_id,
        a.token,
        a.attempt,
        a.claimed_at,
        a.ended_at,
        a.next_run_at,
        a.outcome,
        a.next_status,
        a.owner,
        lag(a.token) OVER jobs AS last_token,
        lead(a.token) OVER jobs AS then_token,
        lead(a.outcome) OVER jobs AS then_outcome,
        lead(a.ended_at) OVER jobs AS then_ended_at
    FROM pacht.attempts AS a
    WINDOW jobs AS (PARTITION BY a.job_id ORDER BY a.token)
),
broken_ledger AS (
    SELECT v.rule, a.job_id, 'ledger, token ' || a.token || ': ' || v.detail AS detail
    FROM ledger AS a
    CROSS JOIN LATERAL (
        VALUES
            ('R2', 'there is a gap before this token', a.token - a.last_token > 1 OR a.token < 1),
            ('R4', 'it ended more than a minute after the next one', a.then_ended_at < a.ended_at - interval '1 minute'),
            ('R4', 'there is a later attempt after Completed', a.next_status = 'Completed' AND a.then_token IS NOT NULL),
            ('R1', 'it was taken over by nobody',
                a.next_status = 'Processing'
                AND a.then_token IS NULL
                AND (
                    SELECT true
                    FROM pacht.leases AS l
                    WHERE l.job_id = a.job_id
                        AND l.status = 'Processing'
                        AND l.token = a.token + 1
                ) IS NOT TRUE),
            ('R4', 'it goes on after it was set aside, and nobody retried it by hand',
                a.next_status IN ('Stuck', 'Dead', 'Cancelled')
                AND a.then_outcome NOT IN ('Cancelled', 'Resolved')
                AND NOT EXISTS (
                    SELECT 1
                    FROM pacht.audit AS u
                    WHERE u.job_id = a.job_id
                        AND u.act = 'retry'
                )),
            ('R4', 'the job is unfinished by the ledger and has no lease',
                a.then_token IS NULL
                AND a.next_status IN ('Pending', 'Stuck')
                AND (SELECT true FROM pacht.leases AS l WHERE l.job_id = a.job_id) IS NOT TRUE),
            ('R4', 'it ended before it was claimed', a.ended_at < a.claimed_at - interval '1 minute'),
            ('R5', 'attempt is above its token, or below 0', a.attempt > a.token OR a.attempt < 0),
            ('R9', 'an outcome that cannot lead to this status',
                (a.outcome = 'Completed' AND a.next_status <> 'Completed')
                OR (a.outcome = 'Unknown' AND a.next_status <> 'Stuck')
                OR (a.outcome = 'Cancelled' AND a.next_status <> 'Cancelled')
                OR (a.outcome = 'Failed' AND a.next_status NOT IN ('Pending', 'Dead', 'Cancelled'))
                OR (a.outcome IN ('Released', 'Snoozed') AND a.next_status NOT IN ('Pending', 'Cancelled'))
                OR (a.outcome = 'Expired' AND a.next_status NOT IN ('Pending', 'Processing', 'Stuck', 'Cancelled'))
                OR (a.outcome = 'Resolved' AND a.next_status NOT IN ('Completed', 'Dead'))),
            ('R9', 'next_run_at does not go with next_status', (a.next_status = 'Pending') <> (a.next_run_at IS NOT NULL)),
            ('R4', 'nobody is recorded as its owner', a.owner = '')
    ) AS v (rule, detail, broken)
    WHERE v.broken
    LIMIT 100
),
broken_lease AS (
    SELECT v.rule, l.job_id, 'lease, ' || l.status || ', token ' || l.token || ': ' || v.detail AS detail
    FROM pacht.leases AS l
    LEFT JOIN pacht.jobs AS j ON j.job_id = l.job_id
    LEFT JOIN LATERAL (
        SELECT a.token, a.next_status
        FROM pacht.attempts AS a
        WHERE a.job_id = l.job_id
        ORDER BY a.token DESC
        LIMIT 1
    ) AS a ON true
    CROSS JOIN LATERAL (
        VALUES
            ('R1', 'it belongs to no job', j.job_id IS NULL),
            ('R1', 'it is held without owner, claimed_at or lease_until',
                l.status = 'Processing'
                AND (coalesce(l.lease_owner, '') = '' OR l.claimed_at IS NULL OR l.lease_until IS NULL OR NOT isfinite(l.lease_until))),
            ('R1', 'it is not held, and has an owner, a time or a cancel request',
                l.status <> 'Processing'
                AND (l.lease_owner IS NOT NULL OR l.claimed_at IS NOT NULL OR l.lease_until IS NOT NULL OR l.cancel_requested)),
            ('R1', 'its status is none that a lease can have', l.status NOT IN ('Pending', 'Processing', 'Stuck')),
            ('R9', 'it is parked with a time to run, or waits without one', (l.status = 'Stuck') <> (l.run_at = 'infinity')),
            ('R2', 'the ledger has a higher token', a.token > l.token),
            ('R2', 'a token is missing in the ledger',
                coalesce(a.token, 0) < l.token - CASE WHEN l.status = 'Processing' THEN 1 ELSE 0 END),
            ('R4', 'the ledger says that it was closed', l.status = 'Processing' AND a.token = l.token),
            ('R4', 'the ledger says Completed', a.next_status = 'Completed'),
            ('R4', 'the ledger says Pending', l.status = 'Stuck' AND a.next_status = 'Pending'),
            ('R4', 'the ledger says that it was never taken', l.status = 'Stuck' AND a.token IS NULL),
            ('R4', 'the ledger says Stuck, Dead or Cancelled, and nobody retried it by hand',
                l.status = 'Pending'
                AND a.next_status IN ('Stuck', 'Dead', 'Cancelled')
                AND NOT EXISTS (
                    SELECT 1
                    FROM pacht.audit AS u
                    WHERE u.job_id = l.job_id
                        AND u.act = 'retry'
                )),
            ('R5', 'attempt is above max_attempts, or below 0', l.attempt > l.max_attempts OR l.attempt < 0),
            ('R5', 'attempt is above token', l.attempt > l.token),
            ('R9', 'it waits at max_attempts', l.status = 'Pending' AND l.attempt >= l.max_attempts),
            ('R9', 'crashes or their cap are out of bounds', l.crashes < 0 OR l.max_crashes < 1),
            ('R6', 'its TTL is out of bounds', l.ttl_ms NOT BETWEEN 100 AND 86400000),
            ('R6', 'it has another TTL, policy, queue or kind than its job',
                l.ttl_ms <> j.ttl_ms OR l.crash_policy <> j.crash_policy OR l.queue <> j.queue OR l.kind <> j.kind),
            ('R6', 'lease_until is before claimed_at', l.status = 'Processing' AND l.lease_until < l.claimed_at)
    ) AS v (rule, detail, broken)
    WHERE v.broken
    LIMIT 100
),
broken_job AS (
    SELECT 'R4' AS rule, j.job_id, 'job: it has no lease, and no attempt that finished it' AS detail
    FROM pacht.jobs AS j
    WHERE NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = j.job_id)
        AND NOT EXISTS (SELECT 1 FROM pacht.attempts AS a WHERE a.job_id = j.job_id)
    LIMIT 100
),
orphan AS (
    SELECT 'R4' AS rule, a.job_id, 'ledger, token ' || a.token || ': there is no such job' AS detail
    FROM pacht.attempts AS a
    WHERE NOT EXISTS (SELECT 1 FROM pacht.jobs AS j WHERE j.job_id = a.job_id)
    LIMIT 100
),
broken_step AS (
    SELECT 'R3' AS rule, s.job_id, 'step ' || s.name || ': nobody ever held token ' || s.token AS detail
    FROM pacht.steps AS s
    WHERE NOT EXISTS (SELECT 1 FROM pacht.attempts AS a WHERE a.job_id = s.job_id AND a.token = s.token)
        AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = s.job_id AND l.token = s.token AND l.status = 'Processing')
    LIMIT 100
),
broken_report AS (
    SELECT 'R7' AS rule, r.job_id, 'report of token ' || r.token || ': no attempt of that token was closed with another outcome' AS detail
    FROM pacht.reports AS r
    WHERE NOT EXISTS (
        SELECT 1
        FROM pacht.attempts AS a
        WHERE a.job_id = r.job_id
            AND a.token = r.token
            AND a.outcome <> r.outcome
    )
    LIMIT 100
),
broken_effect AS (
    SELECT v.rule, e.job_id, 'effect ' || e.name || ', ' || e.state || ', rev ' || e.rev || ': ' || v.detail AS detail
    FROM pacht.effects AS e
    CROSS JOIN LATERAL (
        VALUES
            ('R2', 'there is no such job', NOT EXISTS (SELECT 1 FROM pacht.jobs AS j WHERE j.job_id = e.job_id)),
            ('R3', 'nobody ever held token ' || e.token,
                NOT EXISTS (SELECT 1 FROM pacht.attempts AS a WHERE a.job_id = e.job_id AND a.token = e.token)
                AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = e.job_id AND l.token = e.token AND l.status = 'Processing')),
            ('R10', 'it has no answer, and its holder completed the job',
                e.state IN ('called', 'unknown')
                AND EXISTS (SELECT 1 FROM pacht.attempts AS a WHERE a.job_id = e.job_id AND a.outcome = 'Completed'))
    ) AS v (rule, detail, broken)
    WHERE v.broken
    LIMIT 100
),
broken_watch AS (
    SELECT 'schema' AS rule, 0::bigint AS job_id, 'watch: its one row is missing, so no watcher can work' AS detail
    WHERE NOT EXISTS (SELECT 1 FROM pacht.watch)
)
SELECT b.rule, b.job_id, b.detail FROM broken_ledger AS b
UNION ALL
SELECT b.rule, b.job_id, b.detail FROM broken_lease AS b
UNION ALL
SELECT b.rule, b.job_id, b.detail FROM broken_job AS b
UNION ALL
SELECT b.rule, b.job_id, b.detail FROM orphan AS b
UNION ALL
SELECT b.rule, b.job_id, b.detail FROM broken_step AS b
UNION ALL
SELECT b.rule, b.job_id, b.detail FROM broken_report AS b
UNION ALL
SELECT b.rule, b.job_id, b.detail FROM broken_effect AS b
UNION ALL
SELECT b.rule, b.job_id, b.detail FROM broken_watch AS b
ORDER BY 2, 1, 3;
