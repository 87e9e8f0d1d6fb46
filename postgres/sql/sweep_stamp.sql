-- Stamps a page in its own transaction, so that one which fails is not recorded.
-- $1 target, $2 by, $3 removed, $4 and $5 how far, $6 looking, $7 whole, $8 cost in
-- microseconds, $9 when the next page is due, in microseconds from now, $10 when the next look
-- may begin at the start, likewise, negative = as it was
UPDATE pacht.sweeps AS s
SET passed_at = statement_timestamp(),
    passed_by = $2::text,
    removed = s.removed + $3::bigint,
    after_us = $4::bigint,
    after_id = $5::bigint,
    looking = $6::boolean,
    whole = $7::boolean,
    cost_us = $8::bigint,
    next_at = statement_timestamp() + $9::bigint * interval '1 microsecond',
    whole_at = CASE WHEN $10::bigint < 0 THEN s.whole_at ELSE statement_timestamp() + $10::bigint * interval '1 microsecond' END
WHERE s.target = $1::text;
