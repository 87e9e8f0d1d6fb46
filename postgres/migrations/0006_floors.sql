-- How far the claims of a queue have got that were made in turn: the next one goes on from there, so
-- that no process walks over what all the others hold. Rows are only added, each newer than all
-- before, so that the newest is found at once also while an old snapshot keeps the others; the
-- sweeper takes them away. Nothing of it is worth keeping over a crash, so it is written without WAL.
CREATE UNLOGGED TABLE pacht.floors (
    queue      text        NOT NULL COLLATE "C",
    kinds      bigint      NOT NULL,         -- a number that stands for the claimer's kinds
    look_at    timestamptz NOT NULL,         -- from then on somebody looks from the start again
    priority   smallint    NOT NULL,
    reached_at timestamptz NOT NULL,
    run_at     timestamptz NOT NULL,         -- behind the row of this time and job nothing was left
    job_id     bigint      NOT NULL,
    PRIMARY KEY (queue, kinds, look_at, priority, reached_at)
);
