-- Ends the session if the transaction idles longer than this from here on, so that a stopped
-- client cannot keep the row locked for ever. A stricter bound of the caller's own stays.
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
