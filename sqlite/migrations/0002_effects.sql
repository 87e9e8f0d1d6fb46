-- Calls to the outside that cannot be rolled back (R10): the same table as on PostgreSQL, with
-- the prefix "pacht_", which is replaced by the configured one.

-- What was meant to be done, and what came of it: at most one row of a name for each job,
-- whatever its attempts. The intent is written before the call, fenced by the lease; the answer
-- afterwards, guarded by state and rev. The row goes with its job, and its job not before it
-- has an answer.
CREATE TABLE pacht_effects (
    job_id          INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    first_called_at INTEGER NOT NULL,                   -- from when the provider's memory of the key counts
    key             TEXT    NOT NULL,                   -- idempotency key, fixed by the first intent
    reference       TEXT    NOT NULL,                   -- by which the provider is asked, likewise
    request         TEXT,
    token           INTEGER NOT NULL,                   -- of the lease under which it was called last
    rev             INTEGER NOT NULL DEFAULT 1,         -- + 1 by each change: the fence of answers
    called_at       INTEGER NOT NULL,
    answered_at     INTEGER,
    not_before      INTEGER,                            -- of a ready one
    calls           INTEGER NOT NULL DEFAULT 1,         -- intents so far
    state           TEXT    NOT NULL DEFAULT 'called',
    answer          TEXT,
    error           TEXT,
    PRIMARY KEY (job_id, name),
    CONSTRAINT effect_state CHECK (state IN ('ready', 'called', 'unknown', 'succeeded', 'failed')),
    CONSTRAINT effect_called CHECK ((state = 'called') = (answered_at IS NULL)),
    CONSTRAINT effect_ready CHECK ((state = 'ready') = (not_before IS NOT NULL)),
    CONSTRAINT effect_answer CHECK (answer IS NULL OR state = 'succeeded'),
    CONSTRAINT effect_rev CHECK (calls >= 1 AND rev >= calls)
) STRICT, WITHOUT ROWID;

-- What nobody knows: small, whatever the history.
CREATE INDEX pacht_effects_open ON pacht_effects (job_id, name) WHERE state IN ('called', 'unknown');
