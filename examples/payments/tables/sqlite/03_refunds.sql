-- Refunds are rows of their own: asked for here, or made at the provider's side.
CREATE TABLE refunds (
    refund_id    TEXT        PRIMARY KEY,
    payment_id   TEXT        NOT NULL REFERENCES payments (payment_id),
    amount_minor INTEGER     NOT NULL CHECK (amount_minor > 0),
    currency     TEXT        NOT NULL CHECK (length(currency) = 3),
    status       TEXT        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed')),
    provider_id  TEXT        UNIQUE,
    origin       TEXT        NOT NULL CHECK (origin IN ('here', 'there')),
    why          TEXT        NOT NULL DEFAULT '',
    created_at   INTEGER     NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    settled_at   INTEGER,
    CHECK (status <> 'succeeded' OR provider_id IS NOT NULL),
    CHECK ((status = 'pending') = (settled_at IS NULL))
) STRICT;
