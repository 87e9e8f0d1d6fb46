-- One pass of the watcher, if one is due: turn, pass and stamp in one statement. Who finds
-- the turn locked has none; a pass that dies leaves no trace. Reads the leases once from end
-- to end, because an index on lease_until would be paid for by every renewal. Locks in job
-- order and waits for nobody (R12); what follows an expiry is pacht.Next (R9).
-- Where no lease is known to end, the next pass is due after 100 times what this one took, up to five
-- minutes, if that is longer than the period. Where one is, at its end, but not before 20 times what
-- this one took, up to the period. A worker that missed its beats brings one pass then, which finds
-- out when its leases end, and one at the last end that it has told of.
-- The first row is the pass itself, then 'expired' and 'locked' rows.
-- $1 by, $2 limit, $3 period in milliseconds, $4 force, $5 only jobs after this one
WITH turn AS MATERIALIZED (
    SELECT w.watch_id
    FROM pacht.watch AS w
    WHERE w.watch_id = 1
        AND (
            $4::boolean
            OR w.next_at <= statement_timestamp()
            OR coalesce(w.passed_at, '-infinity')
                + greatest($3::bigint, least(100 * w.took_ms::bigint, 300000)) * interval '1 millisecond' <= statement_timestamp()
            OR EXISTS (
                SELECT 1
                FROM pacht.workers AS k
                WHERE k.stopped_at IS NULL
                    AND k.beat_at + 3 * k.beat_every_ms * interval '1 millisecond' <= statement_timestamp()
                    AND (
                        k.beat_at + 3 * k.beat_every_ms * interval '1 millisecond' > coalesce(w.passed_at, '-infinity')
                        OR (k.last_until <= statement_timestamp() AND k.last_until > coalesce(w.passed_at, '-infinity'))
                    )
            )
        )
    FOR UPDATE SKIP LOCKED
),
looked AS MATERIALIZED (
    SELECT l.job_id, l.lease_until
    FROM pacht.leases AS l
    WHERE (SELECT true FROM turn)
        AND l.status = 'Processing'
),
page AS MATERIALIZED (
    SELECT k.job_id
    FROM looked AS k
    WHERE k.lease_until <= statement_timestamp()
        AND k.job_id > $5::bigint
    ORDER BY k.job_id
    LIMIT $2::bigint
),
held AS MATERIALIZED (
    SELECT
        l.job_id,
        l.token,
        l.kind,
        l.queue,
        l.attempt,
        l.max_attempts,
        l.crashes + 1 AS crashes,
        l.max_crashes,
        l.ttl_ms,
        l.crash_policy,
        l.lease_owner,
        l.claimed_at,
        l.lease_until,
        l.cancel_requested
    FROM pacht.leases AS l
    WHERE l.job_id = ANY (ARRAY(SELECT p.job_id FROM page AS p))
        AND l.status = 'Processing'
        AND l.lease_until <= statement_timestamp()
    ORDER BY l.job_id
    FOR UPDATE SKIP LOCKED
),
closed AS MATERIALIZED (
    SELECT
        h.job_id,
        h.token,
        h.kind,
        h.queue,
        h.attempt,
        h.crashes,
        h.lease_owner,
        h.claimed_at,
        h.lease_until,
        CASE
            WHEN h.crash_policy = 'hold' OR h.attempt >= h.max_attempts OR h.crashes >= h.max_crashes THEN 'Stuck'
            WHEN h.cancel_requested THEN 'Cancelled'
            ELSE 'Pending'
        END AS next_status,
        statement_timestamp()
            + least(h.ttl_ms / 10.0 * power(2.0, least(h.crashes - 1, 10)), h.ttl_ms)::float8 * interval '1 millisecond' AS next_run_at
    FROM held AS h
),
finished AS (
    DELETE FROM pacht.leases AS l
    WHERE l.job_id = ANY (ARRAY(SELECT c.job_id FROM closed AS c WHERE c.next_status = 'Cancelled'))
),
put_back AS (
    UPDATE pacht.leases AS l
    SET status = c.next_status,
        run_at = CASE WHEN c.next_status = 'Stuck' THEN 'infinity' ELSE c.next_run_at END,
        crashes = c.crashes,
        lease_owner = NULL,
        claimed_at = NULL,
        lease_until = NULL,
        cancel_requested = false,
        rev = l.rev + 1
    FROM closed AS c
    WHERE l.job_id = ANY (ARRAY(SELECT b.job_id FROM closed AS b WHERE b.next_status <> 'Cancelled'))
        AND c.job_id = l.job_id
),
ledger AS (
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, outcome, next_status, next_run_at)
    SELECT
        c.job_id,
        c.token,
        c.attempt,
        c.lease_owner,
        c.claimed_at,
        statement_timestamp(),
        'Expired',
        c.next_status,
        CASE WHEN c.next_status = 'Pending' THEN c.next_run_at END
    FROM closed AS c
),
open AS MATERIALIZED (
    SELECT min(k.lease_until) AS earliest
    FROM looked AS k
    WHERE NOT EXISTS (SELECT 1 FROM closed AS c WHERE c.job_id = k.job_id)
),
took AS MATERIALIZED (
    SELECT ceil(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::integer AS ms, o.earliest
    FROM open AS o
),
stamp AS (
    UPDATE pacht.watch AS w
    SET passed_at = statement_timestamp(),
        passed_by = $1::text,
        took_ms = took.ms,
        next_at = greatest(
            statement_timestamp() + least(20 * took.ms::bigint, $3::bigint) * interval '1 millisecond',
            least(
                took.earliest,
                statement_timestamp() + greatest($3::bigint, least(100 * took.ms::bigint, 300000)) * interval '1 millisecond'))
    FROM turn, took
    WHERE w.watch_id = turn.watch_id
    RETURNING w.next_at
),
due AS (
    SELECT least(
        coalesce((SELECT s.next_at FROM stamp AS s), w.next_at),
        CASE
            WHEN NOT EXISTS (SELECT 1 FROM stamp)
                THEN statement_timestamp() + greatest($3::bigint, least(100 * w.took_ms::bigint, 300000)) * interval '1 millisecond'
        END,
        (
            SELECT min(greatest(k.last_until, k.beat_at + 3 * k.beat_every_ms * interval '1 millisecond'))
            FROM pacht.workers AS k
            WHERE k.stopped_at IS NULL
                AND k.last_until > CASE
                    WHEN EXISTS (SELECT 1 FROM turn) THEN statement_timestamp()
                    ELSE coalesce(w.passed_at, '-infinity')
                END
        )) AS at
    FROM pacht.watch AS w
    WHERE w.watch_id = 1
)
SELECT
    'pass' AS what,
    CASE WHEN (SELECT count(*) FROM page) >= $2::bigint THEN (SELECT max(p.job_id) FROM page AS p) ELSE 0 END AS job_id,
    CASE WHEN EXISTS (SELECT 1 FROM turn) THEN 1 ELSE 0 END AS token,
    '' AS kind,
    '' AS queue,
    '' AS owner,
    statement_timestamp() AS lease_until,
    '' AS next_status,
    0 AS crashes,
    coalesce((SELECT ceil(extract(epoch FROM greatest(d.at, statement_timestamp()) - statement_timestamp()) * 1000000) FROM due AS d), 0)::bigint AS next_us
UNION ALL
SELECT 'expired', c.job_id, c.token, c.kind, c.queue, c.lease_owner, c.lease_until, c.next_status, c.crashes, 0
FROM closed AS c
UNION ALL
SELECT 'locked', l.job_id, l.token, '', '', '', NULL, '', 0, 0
FROM pacht.leases AS l
WHERE l.job_id = ANY (ARRAY(
    SELECT p.job_id
    FROM page AS p
    WHERE NOT EXISTS (SELECT 1 FROM held AS h WHERE h.job_id = p.job_id)))
ORDER BY 1 DESC, 2;
