-- Moves every stored time back, as if that long had passed; infinity stays. For tests.
-- $1 microseconds
WITH by AS (
    SELECT $1::bigint * interval '1 microsecond' AS d
),
jobs AS (
    UPDATE pacht.jobs SET created_at = created_at - d, run_at = run_at - d FROM by
),
leases AS (
    UPDATE pacht.leases SET run_at = run_at - d, claimed_at = claimed_at - d, lease_until = lease_until - d, rev = rev + 1 FROM by
),
attempts AS (
    UPDATE pacht.attempts SET claimed_at = claimed_at - d, ended_at = ended_at - d, next_run_at = next_run_at - d FROM by
),
steps AS (
    UPDATE pacht.steps SET at = at - d FROM by
),
effects AS (
    UPDATE pacht.effects
    SET first_called_at = first_called_at - d, called_at = called_at - d, answered_at = answered_at - d, not_before = not_before - d
    FROM by
),
reports AS (
    UPDATE pacht.reports SET at = at - d FROM by
),
keys AS (
    UPDATE pacht.keys SET expires_at = expires_at - d FROM by
),
workers AS (
    UPDATE pacht.workers
    SET started_at = started_at - d, beat_at = beat_at - d, last_until = last_until - d, stopped_at = stopped_at - d
    FROM by
),
floors AS (
    UPDATE pacht.floors SET looked_at = looked_at - d, reached_at = reached_at - d, until = until - d, run_at = run_at - d FROM by
),
voided AS (
    UPDATE pacht.voided SET at = at - d FROM by
),
sweeps AS (
    UPDATE pacht.sweeps SET passed_at = passed_at - d, next_at = next_at - d, whole_at = whole_at - d FROM by
),
sleepers AS (
    UPDATE pacht.sleepers SET until = until - d FROM by
),
audit AS (
    UPDATE pacht.audit SET at = at - d FROM by
),
breaks AS (
    UPDATE pacht.breaks SET first_seen = first_seen - d, last_seen = last_seen - d, next_at = next_at - d FROM by
),
decisions AS (
    UPDATE pacht.decisions SET at = at - d FROM by
)
UPDATE pacht.watch SET passed_at = passed_at - d, next_at = next_at - d FROM by;
