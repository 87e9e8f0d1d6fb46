-- Refuses what no lease may be: owner and end are bounded, and the error names the bound.
-- An end in the past is allowed: the lease is over at once.
CREATE OR REPLACE FUNCTION pacht.textbook_fits(job bigint, owner text, until timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $textbook$
BEGIN
    IF owner IS NULL OR octet_length(owner) NOT BETWEEN 1 AND 256 THEN
        RAISE EXCEPTION 'lease_owner: % is not allowed for job %, which is Processing; want 1 to 256 bytes. To let the job go set status = ''Pending''',
            coalesce(quote_literal(left(owner, 40)), 'NULL'), job
            USING ERRCODE = 'check_violation';
    END IF;
    IF until IS NULL OR NOT isfinite(until) OR until > clock_timestamp() + interval '24 hours' THEN
        RAISE EXCEPTION 'lease_until: % is not allowed for job %, which is Processing; want a time at most 24 hours ahead',
            coalesce(quote_literal(until), 'NULL'), job
            USING ERRCODE = 'check_violation';
    END IF;
END
$textbook$;
