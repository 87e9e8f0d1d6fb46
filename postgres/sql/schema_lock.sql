-- Lets one process at a time migrate, until its transaction ends; a session lock would not
-- work through a pooler.
-- $1 key of the lock
SELECT pg_advisory_xact_lock($1::bigint);
