-- Extends leases to the database's now plus each job's own TTL, row by row (R7): 1 extended,
-- 2 busy (somebody else holds the row locked), 0 lost. Locks in job order and waits for
-- nobody (R12); FOR NO KEY UPDATE passes beside an open transaction that recorded a step.
-- An abandoned renewal that arrives after a later one shortens nothing. Whatever is decided
-- is decided on the locked row, never on the snapshot's version of it.
-- $1 jobs, $2 tokens
WITH asked AS MATERIALIZED (
    SELECT a.job_id, a.token, a.place
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS a (job_id, token, place)
),
locked AS MATERIALIZED (
    SELECT l.job_id, l.token, l.lease_until
    FROM pacht.leases AS l
    WHERE l.job_id = ANY ($1::bigint[])
        AND l.token = ANY ($2::bigint[])
        AND l.status = 'Processing'
    ORDER BY l.job_id
    FOR NO KEY UPDATE SKIP LOCKED
),
renewed AS (
    UPDATE pacht.leases AS l
    SET lease_until = greatest(l.lease_until, statement_timestamp() + l.ttl_ms * interval '1 millisecond'),
        rev = l.rev + 1
    WHERE l.job_id = ANY (ARRAY(
        SELECT k.job_id
        FROM locked AS k
        INNER JOIN asked AS a ON a.job_id = k.job_id AND a.token = k.token
        WHERE k.lease_until > statement_timestamp()))
    RETURNING l.job_id, l.token, l.lease_until, l.cancel_requested
)
SELECT
    a.place,
    CASE
        WHEN r.job_id IS NOT NULL THEN 1
        WHEN k.job_id IS NOT NULL THEN 0
        WHEN (
            SELECT true
            FROM pacht.leases AS s
            WHERE s.job_id = a.job_id
                AND s.token = a.token
                AND s.status = 'Processing'
                AND s.lease_until > statement_timestamp()
        ) THEN 2
        ELSE 0
    END,
    r.lease_until,
    coalesce(r.cancel_requested, false),
    statement_timestamp()
FROM asked AS a
LEFT JOIN renewed AS r ON r.job_id = a.job_id AND r.token = a.token
LEFT JOIN locked AS k ON k.job_id = a.job_id
ORDER BY a.place;
