-- Ends the session if the transaction idles longer than this from here on, asked before a row is
-- locked: so a client that is stopped at any moment after that cannot keep it locked for ever. A
-- stricter bound of the caller's own stays.
-- $1 milliseconds
SELECT set_config(
    'idle_in_transaction_session_timeout',
    CASE
        WHEN current_setting('idle_in_transaction_session_timeout')::interval > interval '0'
            AND current_setting('idle_in_transaction_session_timeout')::interval < $1::bigint * interval '1 millisecond'
            THEN current_setting('idle_in_transaction_session_timeout')
        ELSE $1::bigint::text
    END,
    true);
