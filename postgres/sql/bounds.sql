-- Bounds the statements of this transaction, and only of this one: a setting of the session
-- would not survive a pooler. And keeps the planner from what it does where its statistics say
-- that nothing is to be found: bitmap scans would read and sort a whole queue by one for each
-- claim where the table was empty, scans from end to end do so where everything was held. A sort
-- that is needed is made all the same, at a price that would have the statement compiled: no jit.
-- If the transaction takes more than this round trip, the server ends the session of a client that
-- stops between two of them: it holds no lock, and no snapshot, for longer. A stricter bound that the
-- session has already stays. Answers the database's clock.
-- $1 statement_timeout and $2 lock_timeout, in milliseconds; $3 'on' if a scan of a whole table is
-- wanted, else 'off'; $4 idle_in_transaction_session_timeout in milliseconds, 0 = one round trip
SELECT
    statement_timestamp(),
    set_config('statement_timeout', $1::text, true),
    set_config('lock_timeout', $2::text, true) || set_config('enable_bitmapscan', 'off', true)
        || set_config('enable_seqscan', $3::text, true) || set_config('enable_sort', $3::text, true)
        || set_config('jit', 'off', true)
        || CASE
            WHEN $4::bigint = 0 THEN ''
            ELSE set_config(
                'idle_in_transaction_session_timeout',
                least(
                    $4::bigint,
                    nullif((extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000)::bigint, 0)
                )::text,
                true)
        END;
