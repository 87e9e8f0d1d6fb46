-- Calls to the outside that cannot be rolled back (R10). The schema's name stands as "pacht."
-- in this file and is replaced by the configured one, quoted.

-- What was meant to be done, and what came of it: at most one row of a name for each job,
-- whatever its attempts. The intent is written before the call, fenced by the lease; the answer
-- afterwards, guarded by state and rev. The row goes with its job, and its job not before it
-- has an answer.
CREATE TABLE pacht.effects (
    job_id          bigint      NOT NULL,
    first_called_at timestamptz NOT NULL,                   -- from when the provider's memory of the key counts
    name            text        NOT NULL COLLATE "C",
    key             text        NOT NULL,                   -- idempotency key, fixed by the first intent
    reference       text        NOT NULL,                   -- by which the provider is asked, likewise
    request         json,
    token           bigint      NOT NULL,                   -- of the lease under which it was called last
    rev             bigint      NOT NULL DEFAULT 1,         -- + 1 by each change: the fence of answers
    called_at       timestamptz NOT NULL,
    answered_at     timestamptz,
    not_before      timestamptz,                            -- of a ready one
    calls           integer     NOT NULL DEFAULT 1,         -- intents so far
    state           text        NOT NULL DEFAULT 'called',
    answer          json,
    error           text,
    PRIMARY KEY (job_id, name),
    CONSTRAINT effect_state CHECK (state IN ('ready', 'called', 'unknown', 'succeeded', 'failed')),
    CONSTRAINT effect_called CHECK ((state = 'called') = (answered_at IS NULL)),
    CONSTRAINT effect_ready CHECK ((state = 'ready') = (not_before IS NOT NULL)),
    CONSTRAINT effect_answer CHECK (answer IS NULL OR state = 'succeeded'),
    CONSTRAINT effect_rev CHECK (calls >= 1 AND rev >= calls)
);

-- What nobody knows: small, whatever the history.
CREATE INDEX effects_open ON pacht.effects (job_id, name) WHERE state IN ('called', 'unknown');
