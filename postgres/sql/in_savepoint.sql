-- Says whether the caller's transaction stands inside a savepoint, by the number of the
-- transaction that wrote a row: the row goes with the transaction, which is about to be
-- broken.
-- $1 job, $2 token
INSERT INTO pacht.reports (job_id, token, at, owner, outcome)
VALUES ($1::bigint, $2::bigint, statement_timestamp(), '', 'a probe, never committed')
ON CONFLICT (job_id, token, outcome) DO UPDATE
SET at = excluded.at
RETURNING xmin::text <> pg_current_xact_id()::xid::text;
