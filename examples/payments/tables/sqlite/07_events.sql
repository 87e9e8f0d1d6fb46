-- Webhooks, each event once, and what it did.
CREATE TABLE events (
    event_id     TEXT        PRIMARY KEY,
    kind         TEXT        NOT NULL,
    payment_id   TEXT        NOT NULL DEFAULT '',
    charge_id    TEXT        NOT NULL DEFAULT '',
    payload_hash TEXT        NOT NULL,
    verdict      TEXT        NOT NULL CHECK (verdict IN ('new', 'applied', 'ignored', 'parked', 'break', 'unmatched', 'refused')),
    why          TEXT        NOT NULL DEFAULT '',
    seen         INTEGER     NOT NULL DEFAULT 1,
    received_at  INTEGER     NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    last_at      INTEGER     NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
) STRICT;
