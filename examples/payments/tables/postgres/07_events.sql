-- Webhooks, each event once, and what it did.
CREATE TABLE pacht.events (
    event_id     text        PRIMARY KEY,
    kind         text        NOT NULL,
    payment_id   text        COLLATE "C" NOT NULL DEFAULT '',
    charge_id    text        NOT NULL DEFAULT '',
    payload_hash text        NOT NULL,
    verdict      text        NOT NULL CHECK (verdict IN ('new', 'applied', 'ignored', 'parked', 'break', 'unmatched', 'refused')),
    why          text        NOT NULL DEFAULT '',
    seen         bigint      NOT NULL DEFAULT 1,
    received_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    last_at      timestamptz NOT NULL DEFAULT statement_timestamp()
);
