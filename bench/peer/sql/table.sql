-- The least that a queue needs: a table with a status, and an index over what is pending.
CREATE TABLE floor_jobs (
    job_id   bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_at   timestamptz NOT NULL DEFAULT now(),
    priority smallint    NOT NULL DEFAULT 1,
    status   text        NOT NULL DEFAULT 'pending',
    args     text        NOT NULL
);
CREATE INDEX floor_jobs_pending ON floor_jobs (priority, run_at, job_id) WHERE status = 'pending';
