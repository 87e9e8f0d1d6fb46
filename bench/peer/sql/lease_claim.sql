-- F3: leases the next $1 jobs to the owner $2, from the place ($3, $4) on.
WITH claimed AS (
    UPDATE floor_leases AS l
    SET status = 'Processing',
        lease_owner = $2::text,
        claimed_at = statement_timestamp(),
        lease_until = statement_timestamp() + l.ttl_ms * interval '1 millisecond',
        attempt = l.attempt + 1,
        token = l.token + 1
    WHERE l.job_id = ANY (ARRAY(
        SELECT due.job_id
        FROM (VALUES (1::smallint), (2::smallint), (3::smallint), (4::smallint)) AS p (priority)
        CROSS JOIN LATERAL (
            SELECT c.job_id
            FROM floor_leases AS c
            WHERE c.priority = p.priority
                AND c.run_at <= statement_timestamp()
                AND (c.run_at, c.job_id + 0) >= ($3::timestamptz, $4::bigint)
                AND c.status = 'Pending'
            ORDER BY c.run_at, c.job_id + 0
            LIMIT $1::bigint
            FOR UPDATE SKIP LOCKED
        ) AS due
        LIMIT $1::bigint))
        AND l.status = 'Pending'
    RETURNING l.job_id, l.token, l.run_at, l.lease_until
)
SELECT l.job_id, l.token, l.run_at, l.lease_until, j.args
FROM claimed AS l
LEFT JOIN LATERAL (
    SELECT j.args
    FROM floor_facts AS j
    WHERE j.job_id = l.job_id
    LIMIT 1
) AS j ON true;
