-- Records an act by hand, in the transaction of the act.
-- ?1 now, ?2 actor, ?3 act, ?4 job or NULL, ?5 queue or NULL, ?6 reason
INSERT INTO pacht_audit (at, actor, act, job_id, queue, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);
