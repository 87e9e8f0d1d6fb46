-- What became of each payment, and by whose word.
CREATE TABLE pacht.transitions (
    payment_id  text        COLLATE "C" NOT NULL REFERENCES pacht.payments (payment_id),
    rev         bigint      NOT NULL,
    from_status text        NOT NULL,
    to_status   text        NOT NULL,
    charge_id   text        NOT NULL,
    said_by     text        NOT NULL,
    why         text        NOT NULL,
    evidence    text        NOT NULL,
    at          timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (payment_id, rev)
);
