-- Ends the session if the transaction idles longer than a lease has left, asked before the lease is
-- locked: so a client that is stopped at any moment after that keeps the row locked no longer (R4).
-- At least a second, because however little is left, the commit has to be reached. A stricter bound
-- of the caller's own stays. No row if nobody holds the lease: then nothing will be locked.
-- $1 job, $2 token; $3 true: not what is left but the lease's whole TTL, because renewals go on
WITH held AS MATERIALIZED (
    SELECT
        greatest(
            1000,
            CASE WHEN $3::boolean THEN l.ttl_ms ELSE ceil(extract(epoch FROM l.lease_until - clock_timestamp()) * 1000) END
        )::bigint AS ms
    FROM pacht.leases AS l
    WHERE l.job_id = $1::bigint
        AND l.token = $2::bigint
        AND l.status = 'Processing'
)
SELECT set_config(
    'idle_in_transaction_session_timeout',
    CASE
        WHEN current_setting('idle_in_transaction_session_timeout')::interval > interval '0'
            AND current_setting('idle_in_transaction_session_timeout')::interval < h.ms * interval '1 millisecond'
            THEN current_setting('idle_in_transaction_session_timeout')
        ELSE h.ms::text
    END,
    true)
FROM held AS h;
