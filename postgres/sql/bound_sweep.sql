-- Ends the session if this transaction idles longer, so that a client which stops in the middle
-- of a sweep gives its turn back.
-- $1 milliseconds
SELECT set_config('idle_in_transaction_session_timeout', $1::text, true);
