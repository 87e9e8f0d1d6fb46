-- What became of each payment, and by whose word.
CREATE TABLE transitions (
    payment_id  TEXT        NOT NULL REFERENCES payments (payment_id),
    rev         INTEGER     NOT NULL,
    from_status TEXT        NOT NULL,
    to_status   TEXT        NOT NULL,
    charge_id   TEXT        NOT NULL,
    said_by     TEXT        NOT NULL,
    why         TEXT        NOT NULL,
    evidence    TEXT        NOT NULL,
    at          INTEGER     NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    PRIMARY KEY (payment_id, rev)
) STRICT;
