-- Deletes what nobody goes on from any more of how far claims have got, in a slice of the table by its
-- blocks: no index is worth its price to each claim, and an old snapshot makes no slice longer.
-- Answers how many blocks there are.
-- $1 from this block, $2 how many blocks, $3 the table's name
WITH gone AS (
    DELETE FROM pacht.floors AS f
    WHERE f.ctid = ANY (ARRAY(
        SELECT k.ctid
        FROM pacht.floors AS k
        WHERE k.ctid >= ('(' || $1::bigint || ',0)')::tid
            AND k.ctid < ('(' || $1::bigint + $2::bigint || ',0)')::tid
            AND (k.until <= statement_timestamp() OR k.looked_at >= statement_timestamp() + interval '1 minute')
        FOR UPDATE SKIP LOCKED))
)
SELECT pg_relation_size($3::text::regclass) / current_setting('block_size')::bigint;
