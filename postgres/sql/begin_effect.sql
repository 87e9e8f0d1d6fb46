-- Records the intent to make a call to the outside, fenced, and renews the lease in the same
-- statement (R3, R7, R10): a claim in between finds either no intent, or a lease that is not
-- over. It waits for a row that is locked, and looks at the clock after that. An effect that may
-- not be called now is left as it is; effects.sql says how. No row: the lease is lost.
-- $1 job, $2 token, $3 name, $4 key, $5 reference, $6 request, $7 rev of the open effect that may
-- be called again
WITH locked AS MATERIALIZED (
    SELECT l.job_id, l.token, l.lease_until, l.ttl_ms
    FROM pacht.leases AS l
    WHERE l.job_id = $1::bigint
        AND l.token = $2::bigint
        AND l.status = 'Processing'
    FOR NO KEY UPDATE
),
looked AS MATERIALIZED (
    SELECT k.job_id, k.token, k.lease_until, k.ttl_ms * interval '1 millisecond' AS ttl, clock_timestamp() AS now
    FROM locked AS k
),
held AS MATERIALIZED (
    SELECT k.job_id, k.token, k.now, greatest(k.lease_until, k.now + k.ttl) AS lease_until
    FROM looked AS k
    WHERE k.lease_until > k.now
),
renewed AS (
    UPDATE pacht.leases AS l
    SET lease_until = (SELECT h.lease_until FROM held AS h),
        rev = l.rev + 1
    WHERE l.job_id = ANY (ARRAY(SELECT h.job_id FROM held AS h))
),
written AS (
    INSERT INTO pacht.effects AS e (job_id, first_called_at, name, key, reference, request, token, called_at)
    SELECT h.job_id, h.now, $3::text, $4::text, $5::text, nullif($6::text, '')::json, h.token, h.now
    FROM held AS h
    ON CONFLICT (job_id, name) DO UPDATE
    SET state = 'called',
        rev = e.rev + 1,
        calls = e.calls + 1,
        token = excluded.token,
        called_at = excluded.called_at,
        answered_at = NULL,
        not_before = NULL
    WHERE (e.state = 'ready' AND e.not_before <= excluded.called_at)
        OR (e.state IN ('called', 'unknown') AND e.rev = $7::bigint)
    RETURNING e.job_id
)
SELECT
    h.now,
    h.lease_until,
    EXISTS (SELECT 1 FROM written)
FROM held AS h;
