-- One job.
INSERT INTO floor_jobs (args)
VALUES ($1);
