-- Bounds the statements of this transaction, and only of this one: a setting of the session
-- would not survive a pooler. And keeps the planner from what it does where its statistics say
-- that nothing is to be found: bitmap scans would read and sort a whole queue by one for each
-- claim where the table was empty, scans from end to end do so where everything was held. A sort
-- that is needed is made all the same, at a price that would have the statement compiled: no jit.
-- Answers the database's clock.
-- $1 statement_timeout and $2 lock_timeout, in milliseconds; $3 'on' if a scan of a whole table is
-- wanted, else 'off'
SELECT
    statement_timestamp(),
    set_config('statement_timeout', $1::text, true),
    set_config('lock_timeout', $2::text, true) || set_config('enable_bitmapscan', 'off', true)
        || set_config('enable_seqscan', $3::text, true) || set_config('enable_sort', $3::text, true)
        || set_config('jit', 'off', true);
