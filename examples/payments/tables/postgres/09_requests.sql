-- Idempotency keys of the API, with the answer that each was given.
CREATE TABLE pacht.requests (
    scope       text        NOT NULL,
    key         text        NOT NULL,
    fingerprint text        NOT NULL,
    answer      text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (scope, key)
);
