-- Differences between our records and the provider's, and what was decided about them. Neither
-- goes with its job: they are evidence.

-- The present state of each difference.
CREATE TABLE pacht_breaks (
    reference    TEXT    NOT NULL,
    class        TEXT    NOT NULL,
    rev          INTEGER NOT NULL,          -- decisions in all: the fence of the next one
    status       TEXT    NOT NULL,
    job_id       INTEGER,
    amount_minor INTEGER NOT NULL,          -- at risk
    currency     TEXT,
    checks       INTEGER NOT NULL,          -- decisions since it was opened
    first_seen   INTEGER NOT NULL,
    last_seen    INTEGER NOT NULL,
    next_at      INTEGER,
    ours         TEXT,
    theirs       TEXT,
    PRIMARY KEY (reference, class),
    CONSTRAINT break_status CHECK (status IN ('waiting', 'person', 'healed', 'closed')),
    CONSTRAINT break_next CHECK ((status = 'waiting') = (next_at IS NOT NULL)),
    CONSTRAINT break_amount CHECK (amount_minor >= 0),
    CONSTRAINT break_rev CHECK (rev >= checks AND checks >= 1)
) STRICT, WITHOUT ROWID;

CREATE INDEX pacht_breaks_open ON pacht_breaks (reference, class) WHERE status IN ('waiting', 'person');
CREATE INDEX pacht_breaks_healed ON pacht_breaks (last_seen) WHERE status = 'healed';

-- What was compared, seen and done, by whom. Insert only.
CREATE TABLE pacht_decisions (
    decision_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    reference    TEXT    NOT NULL,
    class        TEXT    NOT NULL,
    rev          INTEGER NOT NULL,          -- that the break had before
    status       TEXT    NOT NULL,
    job_id       INTEGER,
    amount_minor INTEGER NOT NULL,
    currency     TEXT,
    wait_ms      INTEGER NOT NULL,
    actor        TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    ours         TEXT,
    theirs       TEXT,
    UNIQUE (reference, class, rev),
    CONSTRAINT decision_status CHECK (status IN ('waiting', 'person', 'healed', 'closed'))
) STRICT;
