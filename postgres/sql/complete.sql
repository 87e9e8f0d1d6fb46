-- Closes leases as Completed without an output: what most batches consist of, and settle.sql in
-- fewer steps. A completed job is Completed, whatever was requested meanwhile (R9). Locks in the
-- order given, which is that of the jobs, and waits for nobody (R12). Locked rows stay where they
-- are, and are deleted there; history has what was deleted, and nothing else. A row without an answer
-- did not match, or was changed between this statement's snapshot and its lock: see settled.sql.
-- $1 jobs, ascending; $2 tokens
WITH closed AS (
    DELETE FROM pacht.leases AS l
    WHERE l.ctid = ANY (ARRAY(
        SELECT h.ctid
        FROM unnest($1::bigint[], $2::bigint[]) AS a (job_id, token)
        CROSS JOIN LATERAL (
            SELECT l.ctid
            FROM pacht.leases AS l
            WHERE l.job_id = a.job_id
                AND l.token = a.token
                AND l.status = 'Processing'
            LIMIT 1
            FOR UPDATE SKIP LOCKED
        ) AS h))
    RETURNING l.job_id, l.token, l.attempt, l.lease_owner, l.claimed_at, l.lease_until <= statement_timestamp() AS late
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status)
    SELECT c.job_id, c.token, c.attempt, c.lease_owner, c.claimed_at, statement_timestamp(), c.late, 'Completed', 'Completed'
    FROM closed AS c
)
SELECT c.job_id, c.token, c.late
FROM closed AS c;
