-- The business table. Money is whole minor units. A payment is paid exactly if it names its
-- charge.
CREATE TABLE pacht.payments (
    payment_id   text        PRIMARY KEY,
    amount_minor bigint      NOT NULL CHECK (amount_minor > 0),
    currency     text        NOT NULL CHECK (length(currency) = 3),
    status       text        NOT NULL DEFAULT 'created' CHECK (status IN ('created', 'paid', 'declined')),
    charge_ref   text,
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    settled_at   timestamptz,
    CHECK ((status = 'paid') = (charge_ref IS NOT NULL)),
    CHECK ((status = 'created') = (settled_at IS NULL))
);
