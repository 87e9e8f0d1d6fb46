-- Stores jobs with their leases, each (scope, key) at most once in one call. Keys go first and
-- in order, so that two batches cannot deadlock over them (R11). What an enqueue did not say
-- comes from its queue's settings, else from the defaults, and is fixed here (R6). Times are
-- the database's. A job that was not stored has no id: its key is taken (see keys.sql), or
-- its time is beyond the horizon. Where a job is due now and somebody sleeps on its queue, the
-- commit tells it, once for each queue; where nobody sleeps that is one look, because
-- transactions that notify commit one after the other. Nor is anybody told while the server's
-- queue of notices is half full, since a full one would make the commit fail.
-- $1 kinds, $2 args, $3 metadata, $4 queues, $5 priorities, $6 run_at in microseconds since
-- 1970 (0 = now), $7 delays in microseconds, $8 max_attempts, $9 max_crashes, $10 ttl_ms,
-- $11 crash_policies (0 and '' = not said), $12 keys ('' = none), $13 scopes,
-- $14 fingerprints in hex, $15 lives of keys in microseconds, $16 to $19 the defaults of
-- max_attempts, max_crashes, ttl_ms and crash_policy, $20 horizon in microseconds,
-- $21 the name of the sequence of job ids
WITH asked AS MATERIALIZED (
    SELECT
        a.place,
        a.kind,
        a.args,
        a.metadata,
        a.queue,
        a.priority,
        a.max_attempts,
        a.max_crashes,
        a.ttl_ms,
        a.crash_policy,
        a.key,
        a.scope,
        a.fingerprint,
        a.life_us,
        greatest(
            statement_timestamp() + a.delay_us * interval '1 microsecond',
            timestamptz 'epoch' + a.run_at_us * interval '1 microsecond') AS run_at
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::bigint[],
        $8::integer[], $9::integer[], $10::integer[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[]
    ) WITH ORDINALITY AS a (
        kind, args, metadata, queue, priority, run_at_us, delay_us,
        max_attempts, max_crashes, ttl_ms, crash_policy, key, scope, fingerprint, life_us, place
    )
),
numbered AS MATERIALIZED (
    SELECT a.place, a.key, a.scope, a.fingerprint, a.life_us, nextval($21::text::regclass) AS job_id
    FROM asked AS a
    WHERE a.run_at <= statement_timestamp() + $20::bigint * interval '1 microsecond'
),
kept AS (
    INSERT INTO pacht.keys (scope, key, fingerprint, job_id, expires_at)
    SELECT n.scope, n.key, decode(n.fingerprint, 'hex'), n.job_id, statement_timestamp() + n.life_us * interval '1 microsecond'
    FROM numbered AS n
    WHERE n.key <> ''
    ORDER BY n.scope COLLATE "C", n.key COLLATE "C"
    ON CONFLICT (scope, key) DO NOTHING
    RETURNING job_id
),
stored AS MATERIALIZED (
    SELECT
        n.job_id,
        a.place,
        a.kind,
        a.args,
        a.metadata,
        a.queue,
        a.priority,
        a.run_at,
        coalesce(nullif(a.max_attempts, 0), q.max_attempts, $16::integer) AS max_attempts,
        coalesce(nullif(a.max_crashes, 0), q.max_crashes, $17::integer) AS max_crashes,
        coalesce(nullif(a.ttl_ms, 0), q.ttl_ms, $18::integer) AS ttl_ms,
        coalesce(nullif(a.crash_policy, ''), q.crash_policy, $19::text) AS crash_policy
    FROM numbered AS n
    INNER JOIN asked AS a ON a.place = n.place
    LEFT JOIN pacht.queues AS q ON q.queue = a.queue
    WHERE n.key = '' OR n.job_id IN (SELECT k.job_id FROM kept AS k)
),
what AS (
    INSERT INTO pacht.jobs (job_id, created_at, run_at, ttl_ms, max_attempts, max_crashes, priority, crash_policy, queue, kind, args, metadata)
    SELECT
        s.job_id,
        statement_timestamp(),
        s.run_at,
        s.ttl_ms,
        s.max_attempts,
        s.max_crashes,
        s.priority,
        s.crash_policy,
        s.queue,
        s.kind,
        s.args::json,
        nullif(s.metadata, '')::json
    FROM stored AS s
    ORDER BY s.job_id
),
who AS (
    INSERT INTO pacht.leases (job_id, run_at, max_attempts, max_crashes, ttl_ms, priority, crash_policy, queue, kind)
    SELECT s.job_id, s.run_at, s.max_attempts, s.max_crashes, s.ttl_ms, s.priority, s.crash_policy, s.queue, s.kind
    FROM stored AS s
    ORDER BY s.job_id
)
SELECT
    a.place,
    coalesce(s.job_id, 0),
    a.run_at > statement_timestamp() + $20::bigint * interval '1 microsecond'
FROM asked AS a
LEFT JOIN stored AS s ON s.place = a.place
WHERE (
    SELECT count(pg_notify(k.channel, k.queue)::text)  -- equal notices of a transaction are one
    FROM pacht.sleepers AS k
    WHERE k.queue = ANY (ARRAY(SELECT s.queue FROM stored AS s WHERE s.run_at <= statement_timestamp()))
        AND k.until > statement_timestamp()
        AND pg_notification_queue_usage() < 0.5
) >= 0  -- always so
ORDER BY a.place;
