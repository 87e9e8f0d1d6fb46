-- Closes leases row by row: locks the row, decides what follows on what was locked (the rule
-- is pacht.Next), deletes or changes the lease, then writes history (R3, R4). Locks in job
-- order and waits for nobody (R12). A row without an answer did not match: see settled.sql.
-- The same text without SKIP LOCKED settles in a caller's transaction.
-- $1 jobs, $2 tokens, $3 outcomes, $4 delays in microseconds, $5 permanent, $6 give back,
-- $7 errors, $8 outputs
WITH asked AS MATERIALIZED (
    SELECT a.job_id, a.token, a.outcome, a.delay_us, a.permanent, a.give_back, a.error, a.output, a.place
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[], $6::boolean[], $7::text[], $8::text[])
        WITH ORDINALITY AS a (job_id, token, outcome, delay_us, permanent, give_back, error, output, place)
),
held AS MATERIALIZED (
    SELECT
        l.job_id,
        l.token,
        l.attempt,
        l.max_attempts,
        l.crashes,
        l.run_at,
        l.lease_owner,
        l.claimed_at,
        l.lease_until,
        l.cancel_requested
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
        h.lease_until,
        h.lease_until <= statement_timestamp() AS late,
        a.outcome,
        a.error,
        a.output,
        CASE
            WHEN a.outcome = 'Completed' THEN 'Completed'
            WHEN a.outcome = 'Cancelled' THEN 'Cancelled'
            WHEN a.outcome = 'Unknown' THEN 'Stuck'
            WHEN a.outcome = 'Failed' AND (a.permanent OR (NOT a.give_back AND h.attempt >= h.max_attempts)) THEN 'Dead'
            WHEN h.cancel_requested THEN 'Cancelled'
            ELSE 'Pending'
        END AS next_status,
        CASE WHEN a.outcome IN ('Released', 'Snoozed') OR (a.outcome = 'Failed' AND a.give_back) THEN h.attempt - 1 ELSE h.attempt END AS next_attempt,
        CASE WHEN a.outcome = 'Released' THEN h.crashes ELSE 0 END AS next_crashes,
        CASE
            WHEN a.outcome = 'Released' AND a.delay_us = 0 THEN h.run_at
            ELSE statement_timestamp() + a.delay_us * interval '1 microsecond'
        END AS next_run_at
    FROM held AS h
    INNER JOIN asked AS a ON a.job_id = h.job_id AND a.token = h.token
),
finished AS (
    DELETE FROM pacht.leases AS l
    WHERE l.job_id = ANY (ARRAY(
        SELECT c.job_id
        FROM closed AS c
        WHERE c.next_status NOT IN ('Pending', 'Stuck')))
),
back AS MATERIALIZED (
    SELECT c.job_id, c.next_status, c.next_run_at, c.next_attempt, c.next_crashes
    FROM closed AS c
    WHERE c.next_status IN ('Pending', 'Stuck')
),
put_back AS (
    UPDATE pacht.leases AS l
    SET status = c.next_status,
        run_at = CASE WHEN c.next_status = 'Stuck' THEN 'infinity' ELSE c.next_run_at END,
        attempt = c.next_attempt,
        crashes = c.next_crashes,
        lease_owner = NULL,
        claimed_at = NULL,
        lease_until = NULL,
        cancel_requested = false,
        rev = l.rev + 1
    FROM back AS c
    WHERE l.job_id = ANY (ARRAY(
            SELECT b.job_id
            FROM back AS b))
        AND c.job_id = l.job_id
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status, next_run_at, error, output)
    SELECT
        c.job_id,
        c.token,
        c.attempt,
        c.lease_owner,
        c.claimed_at,
        statement_timestamp(),
        c.late,
        c.outcome,
        c.next_status,
        CASE WHEN c.next_status = 'Pending' THEN c.next_run_at END,
        nullif(c.error, ''),
        nullif(c.output, '')::json
    FROM closed AS c
)
SELECT c.place, c.next_status, c.late
FROM closed AS c
ORDER BY c.place;
