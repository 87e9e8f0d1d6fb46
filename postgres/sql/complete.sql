-- Closes leases as Completed without an output: what most batches consist of, and settle.sql in
-- fewer steps. A completed job is Completed, whatever was requested meanwhile (R9). Locks in job
-- order and waits for nobody (R12). A row without an answer did not match: see settled.sql.
-- $1 jobs, $2 tokens
WITH asked AS MATERIALIZED (
    SELECT a.job_id, a.token, a.place
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS a (job_id, token, place)
),
held AS MATERIALIZED (
    SELECT
        l.job_id,
        l.token,
        l.attempt,
        l.lease_owner,
        l.claimed_at,
        l.lease_until
    FROM pacht.leases AS l
    WHERE l.job_id = ANY ($1::bigint[])
        AND l.token = ANY ($2::bigint[])
        AND l.status = 'Processing'
    ORDER BY l.job_id
    FOR UPDATE SKIP LOCKED
),
closed AS MATERIALIZED (
    SELECT
        a.place,
        h.job_id,
        h.token,
        h.attempt,
        h.lease_owner,
        h.claimed_at,
        h.lease_until <= statement_timestamp() AS late
    FROM held AS h
    INNER JOIN asked AS a ON a.job_id = h.job_id AND a.token = h.token
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
