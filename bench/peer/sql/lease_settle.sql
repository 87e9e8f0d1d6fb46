-- F3: closes the leases of the jobs $1 under the tokens $2, and writes the ledger. Waits for a claim of
-- the other loop that has locked one of them for a moment, because it still sees it as pending.
WITH closed AS MATERIALIZED (
    SELECT h.job_id, h.token, h.attempt, h.lease_owner, h.claimed_at
    FROM unnest($1::bigint[], $2::bigint[]) AS a (job_id, token)
    CROSS JOIN LATERAL (
        SELECT l.job_id, l.token, l.attempt, l.lease_owner, l.claimed_at
        FROM floor_leases AS l
        WHERE l.job_id = a.job_id
            AND l.token = a.token
            AND l.status = 'Processing'
        LIMIT 1
        FOR UPDATE
    ) AS h
),
finished AS (
    DELETE FROM floor_leases AS l
    WHERE l.job_id = ANY (ARRAY(
        SELECT c.job_id
        FROM closed AS c))
)
INSERT INTO floor_attempts (job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner)
SELECT c.job_id, c.token, c.claimed_at, statement_timestamp(), c.attempt, 'Completed', 'Completed', c.lease_owner
FROM closed AS c;
