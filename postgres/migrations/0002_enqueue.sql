-- Enqueue by SQL, for other languages, triggers and ORMs: inside any transaction, with the
-- same answers as the library's enqueue. Returns the job's id; with a key that stands for a
-- job with the same content (kind and args, byte for byte) that job's id. NULL means "not
-- said": then the queue's settings count, else the defaults.
--
--     SELECT pacht.enqueue('charge', '{"payment_id": "p1"}', key => 'p1');
CREATE FUNCTION pacht.enqueue(
    kind         text,
    args         json,
    queue        text        DEFAULT 'default',
    priority     integer     DEFAULT 3,
    run_at       timestamptz DEFAULT NULL,
    max_attempts integer     DEFAULT NULL,
    max_crashes  integer     DEFAULT NULL,
    ttl          interval    DEFAULT NULL,
    crash_policy text        DEFAULT NULL,
    key          text        DEFAULT NULL,
    scope        text        DEFAULT '',
    key_life     interval    DEFAULT interval '720 hours',
    metadata     json        DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $pacht_enqueue$
#variable_conflict use_column
DECLARE
    new_id  bigint;
    lasts   bigint := extract(epoch FROM enqueue.ttl) * 1000;
    name_is constant text := '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$';
    print   bytea;
    taken   record;
BEGIN
    IF enqueue.kind IS NULL OR enqueue.kind !~ name_is OR enqueue.queue IS NULL OR enqueue.queue !~ name_is THEN
        RAISE invalid_parameter_value USING MESSAGE = format('kind %L, queue %L: want 1 to 128 of A-Z a-z 0-9 _ - . : / and not a sign at the start', left(enqueue.kind, 40), left(enqueue.queue, 40));
    END IF;
    IF enqueue.args IS NULL OR octet_length(enqueue.args::text) > 1048576 OR octet_length(enqueue.metadata::text) > 1048576 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'args, metadata: want a JSON document of at most 1048576 bytes';
    END IF;
    -- What jsonb cannot hold (NUL, a lone surrogate) fails here and not when somebody reads it.
    PERFORM enqueue.args::jsonb, enqueue.metadata::jsonb;
    IF enqueue.metadata IS NOT NULL AND json_typeof(enqueue.metadata) <> 'object' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'metadata: want a JSON object';
    END IF;
    IF enqueue.priority IS NULL OR enqueue.priority NOT BETWEEN 1 AND 4 THEN
        RAISE invalid_parameter_value USING MESSAGE = format('priority: %s is not allowed, want 1 (first) to 4', coalesce(enqueue.priority::text, 'NULL'));
    END IF;
    IF enqueue.run_at > statement_timestamp() + interval '87600 hours' THEN
        RAISE invalid_parameter_value USING MESSAGE = format('run_at: %s is not allowed, want at most 10 years ahead', enqueue.run_at);
    END IF;
    IF enqueue.max_attempts NOT BETWEEN 1 AND 30000 THEN
        RAISE invalid_parameter_value USING MESSAGE = format('max_attempts: %s is not allowed, want 1 to 30000', enqueue.max_attempts);
    END IF;
    IF enqueue.max_crashes NOT BETWEEN 1 AND 1000 THEN
        RAISE invalid_parameter_value USING MESSAGE = format('max_crashes: %s is not allowed, want 1 to 1000', enqueue.max_crashes);
    END IF;
    IF lasts NOT BETWEEN 100 AND 86400000 THEN
        RAISE invalid_parameter_value USING MESSAGE = format('ttl: %s is not allowed, want 100ms to 24h', enqueue.ttl);
    END IF;
    IF enqueue.crash_policy NOT IN ('retry', 'hold') THEN
        RAISE invalid_parameter_value USING MESSAGE = format('crash_policy: %L is not allowed, want retry or hold', left(enqueue.crash_policy, 40));
    END IF;
    IF octet_length(enqueue.key) NOT BETWEEN 1 AND 512 OR enqueue.scope IS NULL OR octet_length(enqueue.scope) > 512 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'key, scope: want a key of 1 to 512 bytes and a scope of at most 512';
    END IF;
    IF enqueue.key_life IS NULL OR enqueue.key_life NOT BETWEEN interval '1 second' AND interval '87600 hours' THEN
        RAISE invalid_parameter_value USING MESSAGE = format('key_life: %s is not allowed, want 1s to 10 years', coalesce(enqueue.key_life::text, 'NULL'));
    END IF;

    new_id := nextval(pg_get_serial_sequence($pacht$pacht.jobs$pacht$, 'job_id'));
    IF enqueue.key IS NOT NULL THEN
        print := sha256(convert_to(octet_length(enqueue.kind) || ':' || enqueue.kind || enqueue.args::text, 'UTF8'));
        -- Each round is a statement of its own, and sees what was committed before it.
        LOOP
            INSERT INTO pacht.keys AS k (scope, key, fingerprint, job_id, expires_at)
            VALUES (enqueue.scope, enqueue.key, print, new_id, statement_timestamp() + enqueue.key_life)
            ON CONFLICT DO NOTHING;
            EXIT WHEN FOUND;
            SELECT
                k.job_id,
                k.fingerprint,
                k.expires_at <= statement_timestamp()
                    AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = k.job_id) AS over
            INTO taken
            FROM pacht.keys AS k
            WHERE k.scope = enqueue.scope
                AND k.key = enqueue.key
            FOR UPDATE OF k;
            IF NOT FOUND THEN
                CONTINUE;
            END IF;
            IF NOT taken.over THEN
                IF taken.fingerprint = print THEN
                    RETURN taken.job_id;
                END IF;
                RAISE unique_violation USING MESSAGE = format('idempotency key %L already stands for job %s with another kind or other args', left(enqueue.key, 40), taken.job_id);
            END IF;
            DELETE FROM pacht.keys AS k
            WHERE k.scope = enqueue.scope
                AND k.key = enqueue.key
                AND k.job_id = taken.job_id;
        END LOOP;
    END IF;

    INSERT INTO pacht.jobs (job_id, created_at, run_at, ttl_ms, max_attempts, max_crashes, priority, crash_policy, queue, kind, args, metadata)
    SELECT
        new_id,
        statement_timestamp(),
        greatest(enqueue.run_at, statement_timestamp()),
        coalesce(lasts, q.ttl_ms, 60000),
        coalesce(enqueue.max_attempts, q.max_attempts, 25),
        coalesce(enqueue.max_crashes, q.max_crashes, 3),
        enqueue.priority,
        coalesce(enqueue.crash_policy, q.crash_policy, 'retry'),
        enqueue.queue,
        enqueue.kind,
        enqueue.args,
        enqueue.metadata
    FROM (SELECT 1) AS one
    LEFT JOIN pacht.queues AS q ON q.queue = enqueue.queue;
    INSERT INTO pacht.leases (job_id, run_at, max_attempts, max_crashes, ttl_ms, priority, crash_policy, queue, kind)
    SELECT j.job_id, j.run_at, j.max_attempts, j.max_crashes, j.ttl_ms, j.priority, j.crash_policy, j.queue, j.kind
    FROM pacht.jobs AS j
    WHERE j.job_id = new_id;
    -- Goes out at the commit, and only if somebody sleeps: transactions that notify commit one
    -- after the other. A full queue of notices would make the commit fail.
    IF enqueue.run_at IS NULL OR enqueue.run_at <= statement_timestamp() THEN
        PERFORM pg_notify(s.channel, s.queue)
        FROM pacht.sleepers AS s
        WHERE s.queue = enqueue.queue
            AND s.until > statement_timestamp()
            AND pg_notification_queue_usage() < 0.5
        LIMIT 1;
    END IF;
    RETURN new_id;
END
$pacht_enqueue$;
