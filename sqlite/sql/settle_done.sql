-- Closes many held leases as Completed, without error and output: what settle does for one,
-- in one statement. Each lease is named by job and token, and must still be held (R3, R4).
-- finish_done follows in the same transaction. A lease without a row in the answer was not
-- closed; one past lease_until is late (R7).
-- ?1 a JSON object of job: token, ?2 now
INSERT INTO pacht_attempts (
    job_id, token, claimed_at, ended_at, attempt, late, outcome, next_status, owner)
SELECT l.job_id, l.token, l.claimed_at, ?2, l.attempt, l.lease_until < ?2, 'Completed', 'Completed', l.lease_owner
FROM json_each(?1) AS b
CROSS JOIN pacht_leases AS l ON l.job_id = CAST(b.key AS INTEGER)
WHERE l.token = b.value
    AND l.status = 'Processing'
RETURNING job_id, late;
