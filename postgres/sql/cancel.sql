-- Ends a Pending or Stuck job by taking and closing its lease (R2); asks the holder of a
-- Processing one to stop. Answers what the job is from now on; nothing if it has no lease, or
-- somebody else holds the row locked. The request is written as what the row allows: PostgreSQL
-- checks constraints on the snapshot's version of a row before it goes on to the one that was
-- locked, and that version may be vacant.
-- $1 job, $2 actor, $3 reason
WITH found AS MATERIALIZED (
    SELECT l.job_id, l.status, l.token, l.attempt
    FROM pacht.leases AS l
    WHERE l.job_id = $1::bigint
    FOR UPDATE SKIP LOCKED
),
asked AS (
    UPDATE pacht.leases AS l
    SET cancel_requested = l.status = 'Processing',
        rev = l.rev + 1
    WHERE l.job_id = ANY (ARRAY(SELECT f.job_id FROM found AS f WHERE f.status = 'Processing'))
),
ended AS (
    DELETE FROM pacht.leases AS l
    WHERE l.job_id = ANY (ARRAY(SELECT f.job_id FROM found AS f WHERE f.status <> 'Processing'))
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, outcome, next_status)
    SELECT f.job_id, f.token + 1, f.attempt, $2::text, statement_timestamp(), statement_timestamp(), 'Cancelled', 'Cancelled'
    FROM found AS f
    WHERE f.status <> 'Processing'
),
noted AS (
    INSERT INTO pacht.audit (at, actor, act, job_id, reason)
    SELECT
        statement_timestamp(),
        $2::text,
        CASE WHEN f.status = 'Processing' THEN 'cancel request' ELSE 'cancel' END,
        f.job_id,
        $3::text
    FROM found AS f
)
SELECT CASE WHEN f.status = 'Processing' THEN 'Processing' ELSE 'Cancelled' END
FROM found AS f;
