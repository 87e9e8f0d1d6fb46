-- Closes leases as Completed without an output: what most batches consist of, and settle.sql in
-- fewer steps. A completed job is Completed, whatever was requested meanwhile (R9). Locks in the
-- order given, which is that of the jobs, and waits for nobody (R12). A row without an answer
-- did not match: see settled.sql.
-- $1 jobs, ascending; $2 tokens
WITH closed AS MATERIALIZED (
    SELECT a.place, h.job_id, h.token, h.attempt, h.lease_owner, h.claimed_at, h.late
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS a (job_id, token, place)
    CROSS JOIN LATERAL (
        SELECT
            l.job_id,
            l.token,
            l.attempt,
            l.lease_owner,
            l.claimed_at,
            l.lease_until <= statement_timestamp() AS late
        FROM pacht.leases AS l
        WHERE l.job_id = a.job_id
            AND l.token = a.token
            AND l.status = 'Processing'
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS h
),
finished AS (
    DELETE FROM pacht.leases AS l
    WHERE l.job_id = ANY (ARRAY(
        SELECT c.job_id
        FROM closed AS c))
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status)
    SELECT c.job_id, c.token, c.attempt, c.lease_owner, c.claimed_at, statement_timestamp(), c.late, 'Completed', 'Completed'
    FROM closed AS c
)
SELECT c.place, c.late
FROM closed AS c;
