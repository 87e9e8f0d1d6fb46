-- The ledger, in double entry: each movement has two rows that sum up to zero, and is there once.
CREATE TABLE entries (
    movement     TEXT        NOT NULL,
    account      TEXT        NOT NULL CHECK (account IN ('provider', 'sales', 'refunds', 'chargebacks')),
    payment_id   TEXT        NOT NULL REFERENCES payments (payment_id),
    amount_minor INTEGER     NOT NULL CHECK (amount_minor <> 0),
    currency     TEXT        NOT NULL CHECK (length(currency) = 3),
    booked_at    INTEGER     NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    PRIMARY KEY (movement, account)
) STRICT;
