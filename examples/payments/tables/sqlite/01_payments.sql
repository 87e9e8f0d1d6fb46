-- The business rows. Money is whole minor units. A payment that took money names its charge;
-- rev grows with each change. back_minor is what the payer's bank took back.
-- Times are whole milliseconds since 1970 UTC, as in the queue's tables.
CREATE TABLE payments (
    payment_id   TEXT        PRIMARY KEY,
    amount_minor INTEGER     NOT NULL CHECK (amount_minor > 0),
    currency     TEXT        NOT NULL CHECK (length(currency) = 3),
    payer        TEXT        NOT NULL DEFAULT '',
    status       TEXT        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed', 'charged_back')),
    back_minor   INTEGER     NOT NULL DEFAULT 0 CHECK (back_minor BETWEEN 0 AND amount_minor),
    charge_id    TEXT        NOT NULL DEFAULT '',
    why          TEXT        NOT NULL DEFAULT '',
    rev          INTEGER     NOT NULL DEFAULT 1,
    not_after    INTEGER,
    created_at   INTEGER     NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    settled_at   INTEGER,
    CHECK ((status = 'charged_back') = (back_minor > 0)),
    CHECK (status IN ('pending', 'failed') OR charge_id <> ''),
    CHECK ((status = 'pending') = (settled_at IS NULL))
) STRICT;
