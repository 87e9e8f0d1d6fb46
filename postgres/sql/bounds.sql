-- Bounds the statements of this transaction, and only of this one: a setting of the session
-- would not survive a pooler. Bitmap scans are off, because where the planner takes a table for
-- empty it would read and sort a whole queue by one for each claim. Answers the database's clock.
-- $1 statement_timeout and $2 lock_timeout, in milliseconds
SELECT
    statement_timestamp(),
    set_config('statement_timeout', $1::text, true),
    set_config('lock_timeout', $2::text, true) || set_config('enable_bitmapscan', 'off', true);
