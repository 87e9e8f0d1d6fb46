-- The business table. Money is whole minor units. A payment is paid exactly if it names its
-- charge. Times are whole milliseconds since 1970 UTC, as in the queue's tables.
CREATE TABLE payments (
    payment_id   TEXT    PRIMARY KEY,
    amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),
    currency     TEXT    NOT NULL CHECK (length(currency) = 3),
    status       TEXT    NOT NULL DEFAULT 'created' CHECK (status IN ('created', 'paid', 'declined')),
    charge_ref   TEXT,
    created_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    settled_at   INTEGER,
    CHECK ((status = 'paid') = (charge_ref IS NOT NULL)),
    CHECK ((status = 'created') = (settled_at IS NULL))
) STRICT;
