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
            AND NOT EXISTS (SELECT 1 FROM pacht.leases AS l WHERE l.job_id = k.job_id) AS over
    FROM asked AS a
    INNER JOIN pacht.keys AS k ON k.scope = a.scope AND k.key = a.key
),
due AS MATERIALIZED (
    SELECT k.scope, k.key
    FROM seen AS s
    INNER JOIN pacht.keys AS k ON k.scope = s.scope AND k.key = s.key AND k.job_id = s.job_id
    WHERE s.over
    ORDER BY k.scope, k.key
    FOR UPDATE OF k
),
freed AS (
    DELETE FROM pacht.keys AS k
    USING due AS d
    WHERE k.scope = d.scope AND k.key = d.key
)
SELECT a.place, CASE WHEN s.over THEN 0 ELSE coalesce(s.job_id, 0) END, coalesce(s.fingerprint, '')
FROM asked AS a
LEFT JOIN seen AS s ON s.place = a.place
ORDER BY a.place;
