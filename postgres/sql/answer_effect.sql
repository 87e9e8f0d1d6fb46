-- Stores what became of a call to the outside (R10). Guarded by the effect's own state and rev,
-- not by the lease; a success counts whatever the rev, because a call under the same key is the
-- same call. What is final stays. No row: nothing was changed.
-- $1 job, $2 name, $3 rev, $4 state, $5 answer, $6 error, $7 not before so long from now, in
-- microseconds
UPDATE pacht.effects AS e
SET state = $4::text,
    rev = e.rev + 1,
    answered_at = statement_timestamp(),
    not_before = CASE WHEN $4::text = 'ready' THEN statement_timestamp() + $7::bigint * interval '1 microsecond' END,
    answer = CASE WHEN $4::text = 'succeeded' THEN nullif($5::text, '')::json END,
    error = CASE WHEN $4::text <> 'succeeded' THEN coalesce(nullif($6::text, ''), e.error) END
WHERE e.job_id = $1::bigint
    AND e.name = $2::text
    AND e.state IN ('ready', 'called', 'unknown')
    AND (e.rev = $3::bigint OR $4::text = 'succeeded')
RETURNING e.rev;
