-- Appends a decision and brings its break to the state that it says, in one statement. Nothing if
-- the break has another rev than the decider saw (R3): of two that decide on the same, the second
-- waits for the first and then finds it so. Nor if it is with a person and would go back to
-- waiting. A break that had ended is opened again.
-- $1 reference, $2 class, $3 rev (0 = it was not there), $4 status, $5 job (0 = none),
-- $6 amount at risk, $7 currency, $8 ours, $9 theirs, $10 who, $11 why, $12 wait in microseconds,
-- $13 first seen, in microseconds since 1970 (0 = now)
WITH decided AS (
    INSERT INTO pacht.breaks AS b (
        reference, class, rev, status, job_id, amount_minor, currency, checks, first_seen, last_seen, next_at, ours, theirs)
    SELECT
        $1::text,
        $2::text,
        1,
        $4::text,
        nullif($5::bigint, 0),
        $6::bigint,
        nullif($7::text, ''),
        1,
        CASE
            WHEN $13::bigint = 0 THEN statement_timestamp()
            ELSE least(statement_timestamp(), timestamptz 'epoch' + $13::bigint * interval '1 microsecond')
        END,
        statement_timestamp(),
        CASE WHEN $4::text = 'waiting' THEN statement_timestamp() + $12::bigint * interval '1 microsecond' END,
        nullif($8::text, '')::json,
        nullif($9::text, '')::json
    WHERE $3::bigint = 0
        OR EXISTS (
            SELECT 1
            FROM pacht.breaks AS e
            WHERE e.reference = $1::text
                AND e.class = $2::text)
    ON CONFLICT (reference, class) DO UPDATE
    SET rev = b.rev + 1,
        status = excluded.status,
        job_id = excluded.job_id,
        amount_minor = excluded.amount_minor,
        currency = excluded.currency,
        checks = CASE WHEN b.status IN ('waiting', 'person') THEN b.checks + 1 ELSE 1 END,
        first_seen = CASE WHEN b.status IN ('waiting', 'person') THEN b.first_seen ELSE excluded.first_seen END,
        last_seen = excluded.last_seen,
        next_at = excluded.next_at,
        ours = excluded.ours,
        theirs = excluded.theirs
    WHERE b.rev = $3::bigint
        AND NOT (b.status = 'person' AND excluded.status = 'waiting')
    RETURNING b.reference, b.class, b.rev, b.status, b.job_id, b.amount_minor, b.currency, b.checks, b.first_seen, b.last_seen, b.next_at, b.ours, b.theirs
),
noted AS (
    INSERT INTO pacht.decisions (at, reference, class, rev, status, job_id, amount_minor, currency, wait_us, actor, reason, ours, theirs)
    SELECT d.last_seen, d.reference, d.class, d.rev - 1, d.status, d.job_id, d.amount_minor, d.currency, $12::bigint, $10::text, $11::text, d.ours, d.theirs
    FROM decided AS d
)
SELECT
    d.reference,
    d.class,
    d.rev,
    d.status,
    coalesce(d.job_id, 0),
    d.amount_minor,
    coalesce(d.currency, ''),
    d.checks,
    d.first_seen,
    d.last_seen,
    d.next_at,
    coalesce(d.ours::text, ''),
    coalesce(d.theirs::text, '')
FROM decided AS d;
