-- How far the claims of a queue have got that were made in turn: the next one goes on from there, so
-- that no process walks over what all the others hold. Rows are added and never changed, and the
-- newest is found by the key at once, also while an old snapshot keeps all others; the sweeper takes
-- them away. Nothing of it is worth keeping over a crash, so it is written without WAL.
CREATE UNLOGGED TABLE pacht.floors (
    queue      text        NOT NULL COLLATE "C",
    kinds      bigint      NOT NULL,         -- a number that stands for the claimer's kinds
    looked_at  timestamptz NOT NULL,         -- the look from the start of the queue on which this rests
    priority   smallint    NOT NULL,
    reached_at timestamptz NOT NULL,
    until      timestamptz NOT NULL,         -- then somebody looks from the start again
    run_at     timestamptz NOT NULL,         -- claims have got to the row of this time and job
    job_id     bigint      NOT NULL,
    PRIMARY KEY (queue, kinds, looked_at, priority, reached_at)
);
