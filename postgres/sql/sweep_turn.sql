-- Takes the turn of one target, if a page is due, until the end of the transaction, and says how
-- far its sweep has got. Who finds the turn taken has none.
-- $1 target, $2 whether due or not
SELECT s.after_us, s.after_id, s.looking, s.whole, s.cost_us, s.whole_at <= statement_timestamp()
FROM pacht.sweeps AS s
WHERE s.target = $1::text
    AND ($2::boolean OR s.next_at <= statement_timestamp())
FOR UPDATE SKIP LOCKED;
