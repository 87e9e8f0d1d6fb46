-- Refunds are rows of their own: asked for here, or made at the provider's side.
CREATE TABLE pacht.refunds (
    refund_id    text        COLLATE "C" PRIMARY KEY,
    payment_id   text        COLLATE "C" NOT NULL REFERENCES pacht.payments (payment_id),
    amount_minor bigint      NOT NULL CHECK (amount_minor > 0),
    currency     text        NOT NULL CHECK (length(currency) = 3),
    status       text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed')),
    provider_id  text        UNIQUE,
    origin       text        NOT NULL CHECK (origin IN ('here', 'there')),
    why          text        NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    settled_at   timestamptz,
    CHECK (status <> 'succeeded' OR provider_id IS NOT NULL),
    CHECK ((status = 'pending') = (settled_at IS NULL))
);
