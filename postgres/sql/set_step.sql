-- Records what a job has reached, fenced as a settle is (R3). FOR KEY SHARE keeps anybody
-- from closing the lease until the step is committed, and lets renewals pass.
-- $1 job, $2 token, $3 name, $4 data
WITH held AS MATERIALIZED (
    SELECT l.job_id, l.token
    FROM pacht.leases AS l
    WHERE l.job_id = $1::bigint
        AND l.token = $2::bigint
        AND l.status = 'Processing'
    FOR KEY SHARE
)
INSERT INTO pacht.steps (job_id, token, at, name, data)
SELECT h.job_id, h.token, statement_timestamp(), $3::text, nullif($4::text, '')::json
FROM held AS h
RETURNING job_id;
