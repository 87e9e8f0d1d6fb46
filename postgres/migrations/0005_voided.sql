-- Claims of an owner that were given up: whoever lost the answer to one has asked what it holds, and
-- a claim that the network delivers after that takes nothing (R4). Few rows, for a day.
CREATE TABLE pacht.voided (
    owner text        NOT NULL COLLATE "C",
    store bigint      NOT NULL,             -- a number of chance for each opened store, which counts its claims
    claim bigint      NOT NULL,             -- this one and all before it
    at    timestamptz NOT NULL,
    PRIMARY KEY (owner, store)
);
