-- Completes a job that was claimed by hand, fenced by its token (R3): alone, or as the last
-- statement of the transaction that does the work. A lost lease is an error, so that a caller
-- who overlooks it cannot commit that work (R4). Late is accepted while nobody took it (R7).
CREATE OR REPLACE FUNCTION pacht.textbook_complete(job bigint, fence bigint)
RETURNS text
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $textbook$
BEGIN
    WITH held AS MATERIALIZED (
        SELECT l.job_id, l.token, l.attempt, l.lease_owner, l.claimed_at, l.lease_until
        FROM pacht.leases AS l
        WHERE l.job_id = job
            AND l.token = fence
            AND l.status = 'Processing'
        FOR UPDATE
    ), gone AS (
        DELETE FROM pacht.leases AS l
        USING held AS h
        WHERE l.job_id = h.job_id
        RETURNING l.job_id
    )
    INSERT INTO pacht.attempts (job_id, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status)
    SELECT h.job_id, h.token, h.attempt, h.lease_owner, h.claimed_at, clock_timestamp(), h.lease_until <= clock_timestamp(), 'Completed', 'Completed'
    FROM held AS h
    JOIN gone AS g ON g.job_id = h.job_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'lease lost: job %, token % was closed, or taken by somebody else', job, fence
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN 'Completed';
END
$textbook$;
