-- A hand-written heartbeat. On an expired lease it answers zero rows (R7): whoever sent it
-- has lost the job, and may claim it again as anybody may. Never changes the token (R2).
CREATE OR REPLACE FUNCTION pacht.textbook_heartbeat()
RETURNS trigger
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $textbook$
BEGIN
    IF OLD.status <> 'Processing' THEN
        IF NEW.lease_until IS NOT NULL THEN
            RAISE EXCEPTION 'lease_until: job % is %; it is set only together with status = ''Processing''',
                OLD.job_id, OLD.status
                USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF OLD.lease_until <= clock_timestamp() THEN
        RETURN NULL;
    END IF;
    PERFORM pacht.textbook_fits(OLD.job_id, NEW.lease_owner, NEW.lease_until);
    NEW.lease_until := greatest(NEW.lease_until, OLD.claimed_at);
    RETURN NEW;
END
$textbook$;
