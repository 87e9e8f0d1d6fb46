-- Idempotency keys of the API, with the answer that each was given.
CREATE TABLE requests (
    scope       TEXT        NOT NULL,
    key         TEXT        NOT NULL,
    fingerprint TEXT        NOT NULL,
    answer      TEXT        NOT NULL,
    created_at  INTEGER     NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    PRIMARY KEY (scope, key)
) STRICT;
