-- Explains settlements that closed nothing: what the ledger says of that lease, and what the
-- job is now. A lease closed with another outcome by somebody else leaves the late one in
-- reports (R7), if $5 says so.
-- $1 jobs, $2 tokens, $3 outcomes, $4 errors, $5 whether to keep reports
WITH asked AS MATERIALIZED (
    SELECT a.job_id, a.token, a.outcome, a.error, a.place
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS a (job_id, token, outcome, error, place)
),
late AS (
    INSERT INTO pacht.reports (job_id, token, at, owner, outcome, error)
    SELECT a.job_id, a.token, statement_timestamp(), t.owner, a.outcome, nullif(a.error, '')
    FROM asked AS a
    CROSS JOIN LATERAL (
        SELECT t.owner, t.outcome
        FROM pacht.attempts AS t
        WHERE t.job_id = a.job_id AND t.token = a.token
        LIMIT 1
    ) AS t
    WHERE $5::boolean AND t.outcome <> a.outcome
    ORDER BY a.job_id, a.token, a.outcome
    ON CONFLICT (job_id, token, outcome) DO NOTHING
)
SELECT
    a.place,
    coalesce(t.outcome, ''),
    coalesce(t.next_status, ''),
    coalesce(t.late, false),
    coalesce(l.status, n.next_status, ''),
    coalesce(l.token, n.token, 0),
    coalesce(l.lease_owner, t.owner, n.owner, ''),
    l.lease_until
FROM asked AS a
LEFT JOIN LATERAL (
    SELECT t.outcome, t.next_status, t.late, t.owner
    FROM pacht.attempts AS t
    WHERE t.job_id = a.job_id AND t.token = a.token
    LIMIT 1
) AS t ON true
LEFT JOIN LATERAL (
    SELECT l.status, l.token, l.lease_owner, l.lease_until
    FROM pacht.leases AS l
    WHERE l.job_id = a.job_id
    LIMIT 1
) AS l ON true
LEFT JOIN LATERAL (
    SELECT n.next_status, n.token, n.owner
    FROM pacht.attempts AS n
    WHERE n.job_id = a.job_id
    ORDER BY n.token DESC
    LIMIT 1
) AS n ON true
ORDER BY a.place;
