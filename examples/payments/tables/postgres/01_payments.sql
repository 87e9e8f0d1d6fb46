-- The business rows. Money is whole minor units. A payment that took money names its charge;
-- rev grows with each change. back_minor is what the payer's bank took back. Ids are ordered byte for byte, as the program orders pages of
-- payments and refunds together.
CREATE TABLE pacht.payments (
    payment_id   text        COLLATE "C" PRIMARY KEY,
    amount_minor bigint      NOT NULL CHECK (amount_minor > 0),
    currency     text        NOT NULL CHECK (length(currency) = 3),
    payer        text        NOT NULL DEFAULT '',
    status       text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed', 'charged_back')),
    back_minor   bigint      NOT NULL DEFAULT 0 CHECK (back_minor BETWEEN 0 AND amount_minor),
    charge_id    text        NOT NULL DEFAULT '',
    why          text        NOT NULL DEFAULT '',
    rev          bigint      NOT NULL DEFAULT 1,
    not_after    timestamptz,
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    settled_at   timestamptz,
    CHECK ((status = 'charged_back') = (back_minor > 0)),
    CHECK (status IN ('pending', 'failed') OR charge_id <> ''),
    CHECK ((status = 'pending') = (settled_at IS NULL))
);
