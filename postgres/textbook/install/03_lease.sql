-- What a hand-written UPDATE of status or lease_owner does to the lease besides: token,
-- attempt, claimed_at and the ledger, as the product's own claim by id, release and expiry do.
-- What R1 forbids changes nothing and answers zero rows.
CREATE OR REPLACE FUNCTION pacht.textbook_lease()
RETURNS trigger
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $textbook$
DECLARE
    -- Not now(): that stands still in a transaction and while the row's lock is waited for.
    moment  timestamptz := clock_timestamp();
    expired boolean := OLD.status = 'Processing' AND OLD.lease_until <= moment;
    ending  text;
    next    text := 'Pending';
    due     timestamptz := OLD.run_at;
BEGIN
    -- Which job it is, its fence and its counts are not for hands to write.
    IF NEW.job_id IS DISTINCT FROM OLD.job_id THEN
        RAISE EXCEPTION 'id: the id of job % never changes', OLD.job_id
            USING ERRCODE = 'check_violation';
    END IF;
    NEW.token := OLD.token;
    NEW.attempt := OLD.attempt;
    NEW.crashes := OLD.crashes;
    NEW.claimed_at := OLD.claimed_at;

    CASE
    WHEN NEW.status IN ('Completed', 'Dead') THEN
        RAISE EXCEPTION 'status: % is not set by hand for job %. If you hold it: SELECT %.textbook_complete(job, token), or the library''s Settle. If nobody holds it: pacht jobs resolve % --as % --by NAME --reason WHY',
            quote_literal(NEW.status), OLD.job_id, quote_ident(TG_TABLE_SCHEMA), OLD.job_id, lower(NEW.status)
            USING ERRCODE = 'object_not_in_prerequisite_state';
    WHEN NEW.status = 'Cancelled' THEN
        RAISE EXCEPTION 'status: ''Cancelled'' is not set by hand for job %. Call: pacht jobs cancel % --by NAME --reason WHY',
            OLD.job_id, OLD.job_id
            USING ERRCODE = 'object_not_in_prerequisite_state';
    WHEN NEW.status = 'Stuck' AND OLD.status <> 'Stuck' THEN
        RAISE EXCEPTION 'status: ''Stuck'' is not set by hand for job %. A job is parked by its crash policy, by its caps, or when its holder settles it as Unknown (the library''s Settle)',
            OLD.job_id
            USING ERRCODE = 'object_not_in_prerequisite_state';
    WHEN NEW.status = 'Pending' AND OLD.status = 'Stuck' THEN
        -- R10: what is parked is not run again without a person's name under it.
        RAISE EXCEPTION 'status: job % is Stuck, and is not set to ''Pending'' by hand. Call: pacht jobs retry % --by NAME --reason WHY',
            OLD.job_id, OLD.job_id
            USING ERRCODE = 'object_not_in_prerequisite_state';
    WHEN NEW.status IS NULL OR NEW.status NOT IN ('Pending', 'Processing', 'Stuck') THEN
        RAISE EXCEPTION 'status: % is not allowed for job %; want ''Processing'' or ''Pending''',
            coalesce(quote_literal(left(NEW.status, 40)), 'NULL'), OLD.job_id
            USING ERRCODE = 'check_violation';
    ELSE
        NULL;
    END CASE;

    IF NEW.status = 'Processing' THEN
        -- R1: a due vacant lease, or an expired one that its policy and caps still let run.
        IF OLD.status = 'Stuck' OR (OLD.status = 'Pending' AND OLD.run_at > moment) THEN
            RETURN NULL;
        END IF;
        IF OLD.status = 'Processing' AND NOT expired THEN
            IF NEW.lease_owner <> OLD.lease_owner THEN
                RETURN NULL;
            END IF;
            -- A heartbeat that names more columns than it needs.
            PERFORM pacht.textbook_fits(OLD.job_id, NEW.lease_owner, NEW.lease_until);
            NEW.lease_until := greatest(NEW.lease_until, OLD.claimed_at);
            RETURN NEW;
        END IF;
        IF expired AND (OLD.crash_policy <> 'retry' OR OLD.cancel_requested
                OR OLD.attempt >= OLD.max_attempts OR OLD.crashes + 1 >= OLD.max_crashes) THEN
            RETURN NULL;
        END IF;
        PERFORM pacht.textbook_fits(OLD.job_id, NEW.lease_owner, NEW.lease_until);
        IF expired THEN
            INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status)
            VALUES (OLD.job_id, OLD.token, OLD.attempt, OLD.lease_owner, OLD.claimed_at, moment, false, 'Expired', 'Processing');
            NEW.crashes := OLD.crashes + 1;
        END IF;
        NEW.token := OLD.token + 1;      -- R2
        NEW.attempt := OLD.attempt + 1;  -- R5
        NEW.claimed_at := moment;
        NEW.lease_until := greatest(NEW.lease_until, moment);
        RETURN NEW;
    END IF;

    IF OLD.status <> 'Processing' THEN
        IF NEW.lease_owner IS NOT NULL OR NEW.lease_until IS NOT NULL THEN
            RAISE EXCEPTION 'lease_owner, lease_until: job % is %; they are set only together with status = ''Processing''',
                OLD.job_id, OLD.status
                USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;

    -- Processing to Pending: an expired lease is closed as the watcher would (R9), a live one
    -- is released, and whoever let it go stands in the audit.
    IF expired THEN
        ending := 'Expired';
        NEW.crashes := OLD.crashes + 1;
        due := moment + least(
            OLD.ttl_ms * interval '1 millisecond',
            OLD.ttl_ms * interval '100 microseconds' * (1 << least(OLD.crashes::integer, 4)));
        IF OLD.crash_policy = 'hold' OR OLD.attempt >= OLD.max_attempts OR NEW.crashes >= OLD.max_crashes THEN
            next := 'Stuck';
        END IF;
    ELSE
        ending := 'Released';
        NEW.attempt := OLD.attempt - 1;
    END IF;
    IF next = 'Pending' AND OLD.cancel_requested THEN
        next := 'Cancelled';
    END IF;
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status, next_run_at)
    VALUES (OLD.job_id, OLD.token, OLD.attempt, OLD.lease_owner, OLD.claimed_at, moment, false, ending, next,
        CASE WHEN next = 'Pending' THEN due END);
    IF ending = 'Released' THEN
        INSERT INTO pacht.audit (at, actor, act, job_id, queue, reason)
        VALUES (moment, session_user, 'release', OLD.job_id, OLD.queue, 'status set to Pending by SQL');
    END IF;
    IF next = 'Cancelled' THEN
        -- A finished job has no lease row. The caller's UPDATE finds nothing left to do.
        DELETE FROM pacht.leases WHERE job_id = OLD.job_id;
        RAISE NOTICE 'job % is Cancelled: a cancel was requested', OLD.job_id;
        RETURN NULL;
    END IF;
    NEW.status := next;
    NEW.run_at := CASE WHEN next = 'Stuck' THEN 'infinity' ELSE due END;
    NEW.lease_owner := NULL;
    NEW.claimed_at := NULL;
    NEW.lease_until := NULL;
    NEW.cancel_requested := false;
    RETURN NEW;
END
$textbook$;
