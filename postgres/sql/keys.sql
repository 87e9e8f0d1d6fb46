-- What taken keys stand for, read again in a statement of its own, because the one that met
-- them may not have seen them yet. A key whose life is over and whose job is finished is
-- freed here, and decided here to be so (R11): then it has no job, and is to be tried again.
-- $1 scopes, $2 keys
WITH asked AS MATERIALIZED (
    SELECT a.scope, a.key, a.place
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (scope, key, place)
),
seen AS MATERIALIZED (
    SELECT
        a.place,
        k.scope,
        k.key,
        k.job_id,
        encode(k.fingerprint, 'hex') AS fingerprint,
        k.expires_at <= statement_timestamp()
            AND (SELECT true FROM pacht.leases AS l WHERE l.job_id = k.job_id) IS NOT TRUE AS over
    FROM asked AS a
    CROSS JOIN LATERAL (
        SELECT k.scope, k.key, k.job_id, k.fingerprint, k.expires_at
        FROM pacht.keys AS k
        WHERE k.scope = a.scope AND k.key = a.key
        LIMIT 1
    ) AS k
),
due AS MATERIALIZED (
    SELECT k.place
    FROM (
        SELECT s.scope, s.key, s.job_id
        FROM seen AS s
        WHERE s.over
        ORDER BY s.scope, s.key
    ) AS s
    CROSS JOIN LATERAL (
        SELECT k.ctid AS place
        FROM pacht.keys AS k
        WHERE k.scope = s.scope AND k.key = s.key AND k.job_id = s.job_id
        LIMIT 1
        FOR UPDATE
    ) AS k
),
freed AS (
    DELETE FROM pacht.keys AS k
    WHERE k.ctid = ANY (ARRAY(SELECT d.place FROM due AS d))
)
SELECT a.place, CASE WHEN s.over THEN 0 ELSE coalesce(s.job_id, 0) END, coalesce(s.fingerprint, '')
FROM asked AS a
LEFT JOIN seen AS s ON s.place = a.place
ORDER BY a.place;
