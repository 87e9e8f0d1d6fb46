-- Records what a held job has reached, fenced as a settle is (R3). Zero rows: lost.
-- ?1 job, ?2 token, ?3 now, ?4 name, ?5 data
INSERT INTO pacht_steps (job_id, token, at, name, data)
SELECT job_id, token, ?3, ?4, ?5
FROM pacht_leases
WHERE job_id = ?1
    AND token = ?2
    AND status = 'Processing';
