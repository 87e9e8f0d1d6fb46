-- Takes due jobs of one queue and some kinds, best priority first: never more than asked,
-- in one atomic statement (R1). Token and attempt are raised here and nowhere else (R2, R5).
-- The candidates are gathered in an array, because as a join or IN a bad plan takes more
-- than the limit; each priority is probed by itself, so that future jobs of a better one
-- cost nothing. Touches no indexed column, so the update is HOT. The rows come in no order, and
-- without what the caller knows of them: sorted here, each would be copied once more.
-- $1 owner, $2 queue, $3 kinds, $4 limit; $5 to $12 the floor of each priority as a pair of
-- run_at (microseconds since 1970, 0 = before all) and job_id, from where to look; $13 the
-- store's number and $14 the claim's: one that its owner has made void takes nothing (R4); $15 the
-- number of the kinds, if the claim has the turn and others may go on from where it gets to, else
-- NULL; $16 the look from the start on which that rests and $17 until when that holds, in
-- microseconds since 1970, 0 = this claim is one, and it holds for a second, or 50 times what it took.
-- Of rows that are younger than a second nothing is told: others before them may not be committed yet.
-- The last row of each priority is found by two looks without a sort, which would cost a seventh of a claim
WITH claimed AS (
    UPDATE pacht.leases AS l
    SET status = 'Processing',
        lease_owner = $1::text,
        claimed_at = statement_timestamp(),
        lease_until = statement_timestamp() + l.ttl_ms * interval '1 millisecond',
        attempt = l.attempt + 1,
        token = l.token + 1,
        rev = l.rev + 1
    WHERE l.job_id = ANY (ARRAY(
        SELECT due.job_id
        FROM (
            VALUES
                (1::smallint, $5::bigint, $6::bigint),
                (2::smallint, $7::bigint, $8::bigint),
                (3::smallint, $9::bigint, $10::bigint),
                (4::smallint, $11::bigint, $12::bigint)
        ) AS p (priority, floor_us, floor_id)
        CROSS JOIN LATERAL (
            SELECT c.job_id
            FROM pacht.leases AS c
            WHERE c.queue = $2::text
                AND c.priority = p.priority
                AND c.run_at <= statement_timestamp()
                AND (c.run_at, c.job_id + 0) >= (
                    coalesce(timestamptz 'epoch' + nullif(p.floor_us, 0) * interval '1 microsecond', '-infinity'), p.floor_id)
                AND c.status = 'Pending'
                AND c.kind = ANY ($3::text[])
            ORDER BY c.run_at, c.job_id + 0
            LIMIT $4::bigint
            FOR UPDATE SKIP LOCKED
        ) AS due
        LIMIT $4::bigint))
        AND l.status = 'Pending'
        AND NOT EXISTS (SELECT 1 FROM pacht.voided AS v WHERE v.owner = $1::text AND v.store = $13::bigint AND v.claim >= $14::bigint)
    RETURNING
        l.job_id,
        l.kind,
        l.priority,
        l.attempt,
        l.max_attempts,
        l.crashes,
        l.max_crashes,
        l.token,
        l.ttl_ms,
        l.crash_policy,
        l.run_at,
        l.claimed_at,
        l.lease_until,
        l.cancel_requested
),
reached AS (
    INSERT INTO pacht.floors (queue, kinds, looked_at, priority, reached_at, until, run_at, job_id)
    SELECT
        $2::text,
        $15::bigint,
        coalesce(timestamptz 'epoch' + nullif($16::bigint, 0) * interval '1 microsecond', statement_timestamp()),
        last.priority,
        statement_timestamp(),
        coalesce(
            timestamptz 'epoch' + nullif($17::bigint, 0) * interval '1 microsecond',
            statement_timestamp()
                + least(greatest(50 * (clock_timestamp() - statement_timestamp()), interval '1 second'), interval '5 minutes')),
        last.run_at,
        max(l.job_id)
    FROM (
        SELECT l.priority, max(l.run_at) AS run_at
        FROM claimed AS l
        WHERE $15::bigint IS NOT NULL
            AND l.run_at <= statement_timestamp() - interval '1 second'
        GROUP BY l.priority
    ) AS last
    INNER JOIN claimed AS l ON l.priority = last.priority AND l.run_at = last.run_at
    GROUP BY last.priority, last.run_at
    ON CONFLICT (queue, kinds, looked_at, priority, reached_at) DO NOTHING
)
SELECT
    l.job_id,
    l.kind,
    l.priority,
    j.args,
    j.metadata,
    l.attempt,
    l.max_attempts,
    l.crashes,
    l.max_crashes,
    l.token,
    l.ttl_ms,
    l.crash_policy,
    j.created_at,
    l.run_at,
    l.claimed_at,
    l.lease_until,
    l.cancel_requested
FROM claimed AS l
LEFT JOIN LATERAL (
    SELECT j.created_at, j.args, j.metadata
    FROM pacht.jobs AS j
    WHERE j.job_id = l.job_id
    LIMIT 1
) AS j ON true;
