-- Waits until no claim of this owner is under way, for as long as lock_timeout allows, and keeps new
-- ones waiting until this transaction ends. Locks go after a commit is seen by others, and so does a
-- claim that waited for its log or for a standby (R4).
-- $1 schema and owner
SELECT pg_advisory_xact_lock(hashtextextended($1::text, 1));
