-- The lease, its jobs and its ledger: the same tables as on PostgreSQL, in the file of the
-- business tables, with the prefix "pacht_", which is replaced by the configured one.
-- Times are whole milliseconds since 1970 UTC: datetime(lease_until / 1000.0, 'unixepoch').
-- 253402300799999 (the end of the year 9999) stands for infinity.

-- What is to be done. Insert only. AUTOINCREMENT, because ids are never reused.
CREATE TABLE pacht_jobs (
    job_id       INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at   INTEGER NOT NULL,
    run_at       INTEGER NOT NULL,
    ttl_ms       INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    max_crashes  INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    crash_policy TEXT    NOT NULL,
    queue        TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    args         TEXT    NOT NULL,
    metadata     TEXT
) STRICT;

-- Who may do it, and until when: one narrow row per unfinished job, deleted when it is done.
CREATE TABLE pacht_leases (
    job_id           INTEGER PRIMARY KEY,
    token            INTEGER NOT NULL DEFAULT 0,            -- the fence: + 1 each time the lease is taken (R2)
    run_at           INTEGER NOT NULL,                      -- infinity if Stuck
    claimed_at       INTEGER,
    lease_until      INTEGER,                               -- decides expiry, and nothing else does (R6)
    attempt          INTEGER NOT NULL DEFAULT 0,            -- counted by the claim (R5)
    max_attempts     INTEGER NOT NULL,
    ttl_ms           INTEGER NOT NULL,
    rev              INTEGER NOT NULL DEFAULT 0,            -- + 1 by each statement of the product
    crashes          INTEGER NOT NULL DEFAULT 0,            -- expiries in a row (R9)
    max_crashes      INTEGER NOT NULL,
    priority         INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    status           TEXT    NOT NULL DEFAULT 'Pending',
    crash_policy     TEXT    NOT NULL,
    queue            TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    lease_owner      TEXT,
    CONSTRAINT lease_status CHECK (status IN ('Pending', 'Processing', 'Stuck')),
    CONSTRAINT lease_held CHECK (
        CASE WHEN status = 'Processing'
            THEN lease_owner IS NOT NULL AND claimed_at IS NOT NULL AND lease_until IS NOT NULL AND lease_until < 253402300799999
            ELSE lease_owner IS NULL AND claimed_at IS NULL AND lease_until IS NULL AND cancel_requested = 0
        END),
    CONSTRAINT lease_parked CHECK ((status = 'Stuck') = (run_at = 253402300799999)),
    CONSTRAINT lease_attempts CHECK (attempt >= 0 AND attempt <= max_attempts AND (status <> 'Pending' OR attempt < max_attempts)),
    CONSTRAINT lease_token CHECK (token >= attempt),
    CONSTRAINT lease_crashes CHECK (crashes >= 0 AND max_crashes >= 1),
    CONSTRAINT lease_priority CHECK (priority BETWEEN 1 AND 4),
    CONSTRAINT lease_ttl CHECK (ttl_ms BETWEEN 100 AND 86400000),
    CONSTRAINT lease_policy CHECK (crash_policy IN ('retry', 'hold')),
    CONSTRAINT lease_cancel CHECK (cancel_requested IN (0, 1))
) STRICT;

CREATE INDEX pacht_leases_claim ON pacht_leases (queue, priority, run_at, job_id);

-- How each lease ended: the ledger. Insert only (R4).
CREATE TABLE pacht_attempts (
    job_id      INTEGER NOT NULL,
    token       INTEGER NOT NULL,
    claimed_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    next_run_at INTEGER,
    attempt     INTEGER NOT NULL,
    late        INTEGER NOT NULL DEFAULT 0,
    outcome     TEXT    NOT NULL,
    next_status TEXT    NOT NULL,
    owner       TEXT    NOT NULL,
    error       TEXT,
    output      TEXT,
    PRIMARY KEY (job_id, token),
    CONSTRAINT attempt_outcome CHECK (outcome IN ('Completed', 'Failed', 'Expired', 'Released', 'Snoozed', 'Cancelled', 'Unknown', 'Resolved')),
    CONSTRAINT attempt_next CHECK (next_status IN ('Pending', 'Processing', 'Stuck', 'Completed', 'Dead', 'Cancelled')),
    CONSTRAINT attempt_next_run CHECK ((next_status = 'Pending') = (next_run_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX pacht_attempts_ended_badly ON pacht_attempts (next_status, ended_at, job_id) WHERE next_status IN ('Dead', 'Cancelled');

-- What a job has reached. Insert only, fenced.
CREATE TABLE pacht_steps (
    step_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id  INTEGER NOT NULL,
    token   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    data    TEXT
) STRICT;
CREATE INDEX pacht_steps_job ON pacht_steps (job_id, step_id);

-- What came too late to count. Insert only (R7).
CREATE TABLE pacht_reports (
    job_id  INTEGER NOT NULL,
    token   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    outcome TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    error   TEXT,
    PRIMARY KEY (job_id, token, outcome)
) STRICT, WITHOUT ROWID;

-- Idempotency keys, with a life of their own (R11).
CREATE TABLE pacht_keys (
    scope       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    job_id      INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- A queue's own settings; NULL means the default.
CREATE TABLE pacht_queues (
    queue        TEXT PRIMARY KEY,
    ttl_ms       INTEGER,
    max_attempts INTEGER,
    max_crashes  INTEGER,
    crash_policy TEXT
) STRICT, WITHOUT ROWID;

-- One row per run of a worker process. No lease depends on it. queues and kinds are JSON arrays.
CREATE TABLE pacht_workers (
    owner         TEXT PRIMARY KEY,
    host          TEXT    NOT NULL,
    pid           INTEGER NOT NULL,
    queues        TEXT    NOT NULL,
    kinds         TEXT    NOT NULL,
    beat_every_ms INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    beat_at       INTEGER NOT NULL,
    last_until    INTEGER,
    stopped_at    INTEGER
) STRICT, WITHOUT ROWID;

-- Acts by hand. Insert only; outlives its job.
CREATE TABLE pacht_audit (
    audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    act      TEXT    NOT NULL,
    job_id   INTEGER,
    queue    TEXT,
    reason   TEXT    NOT NULL
) STRICT;
CREATE INDEX pacht_audit_job ON pacht_audit (job_id);

-- The Stuck Watcher's turn: one row.
CREATE TABLE pacht_watch (
    watch_id  INTEGER PRIMARY KEY DEFAULT 1 CHECK (watch_id = 1),
    passed_at INTEGER,
    passed_by TEXT,
    took_ms   INTEGER NOT NULL DEFAULT 0,
    next_at   INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO pacht_watch DEFAULT VALUES;

-- Maintenance: one row for each target, with its turn and how far its sweep has got.
CREATE TABLE pacht_sweeps (
    target    TEXT PRIMARY KEY,
    passed_at INTEGER,
    passed_by TEXT,
    removed   INTEGER NOT NULL DEFAULT 0,  -- in all
    next_at   INTEGER NOT NULL DEFAULT 0,  -- when the next page is due
    whole_at  INTEGER NOT NULL DEFAULT 0,  -- when the next look may begin at the start
    looking   INTEGER NOT NULL DEFAULT 0,  -- a look is under way
    whole     INTEGER NOT NULL DEFAULT 0,  -- and began at the start
    cost_us   INTEGER NOT NULL DEFAULT 0,  -- what it took so far
    after_us  INTEGER NOT NULL DEFAULT 0,  -- where it has got to
    after_id  INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO pacht_sweeps (target)
VALUES ('Completed'), ('Dead'), ('Cancelled'), ('keys'), ('workers');

-- One row per job: its facts, its status, its lease, its last attempt. For reading one job
-- or a page by job_id, not for counting.
CREATE VIEW pacht_job_status AS
SELECT
    j.job_id,
    j.kind,
    j.queue,
    j.priority,
    coalesce(l.status, a.next_status) AS status,
    coalesce(l.attempt, a.attempt, 0) AS attempt,
    coalesce(l.max_attempts, j.max_attempts) AS max_attempts,
    coalesce(l.token, a.token, 0) AS token,
    coalesce(l.crashes, 0) AS crashes,
    j.max_crashes,
    j.ttl_ms,
    j.crash_policy,
    j.created_at,
    l.run_at,
    l.lease_owner,
    l.claimed_at,
    l.lease_until,
    coalesce(l.cancel_requested, 0) AS cancel_requested,
    CASE WHEN l.job_id IS NULL THEN a.ended_at END AS finished_at,
    a.outcome AS last_outcome,
    a.owner AS last_owner,
    a.ended_at AS last_ended_at,
    a.error AS last_error,
    j.args,
    j.metadata
FROM pacht_jobs AS j
LEFT JOIN pacht_leases AS l ON l.job_id = j.job_id
LEFT JOIN pacht_attempts AS a ON a.job_id = j.job_id
    AND a.token = (SELECT max(b.token) FROM pacht_attempts AS b WHERE b.job_id = j.job_id);
