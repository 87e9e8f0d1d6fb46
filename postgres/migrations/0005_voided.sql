-- Claims of an owner that were given up: whoever lost the answer to one has asked what it holds, and
-- a claim that the network delivers after that takes nothing (R4). Few rows, for a day.
CREATE TABLE pacht.voided (
    owner text        PRIMARY KEY COLLATE "C",
    claim bigint      NOT NULL,                 -- this one and all before it
    at    timestamptz NOT NULL
);
