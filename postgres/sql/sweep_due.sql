-- Whether a page of a sweep is due: what most calls end with, without a lock.
-- $1 target
SELECT true
FROM pacht.sweeps AS s
WHERE s.target = $1::text
    AND s.next_at <= statement_timestamp();
