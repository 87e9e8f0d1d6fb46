-- The ledger, in double entry: each movement has two rows that sum up to zero, and is there once.
CREATE TABLE pacht.entries (
    movement     text        NOT NULL,
    account      text        NOT NULL CHECK (account IN ('provider', 'sales', 'refunds', 'chargebacks')),
    payment_id   text        COLLATE "C" NOT NULL REFERENCES pacht.payments (payment_id),
    amount_minor bigint      NOT NULL CHECK (amount_minor <> 0),
    currency     text        NOT NULL CHECK (length(currency) = 3),
    booked_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (movement, account)
);
