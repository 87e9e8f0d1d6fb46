-- F3: jobs and their leases, of the documents $1.
WITH added AS (
    INSERT INTO floor_facts (args)
    SELECT a.args::json
    FROM unnest($1::text[]) AS a (args)
    RETURNING job_id
)
INSERT INTO floor_leases (job_id)
SELECT job_id
FROM added;
