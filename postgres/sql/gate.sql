-- Waits until no other claim of this queue is on its way, for as long as lock_timeout allows, and
-- keeps others waiting until this transaction ends. Nothing depends on it but speed: of two
-- claims at once the second walks over all that the first has locked, and locks for a moment
-- what the first has just taken, so that a settle finds it busy. Who has the turn and does not
-- go on is cut off, by what bounds.sql says. Answers how long that took,
-- in microseconds, and when it was over, in microseconds since 1970.
-- $1 schema and queue
SELECT
    pg_advisory_xact_lock(hashtextextended($1::text, 0))::text,
    (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
