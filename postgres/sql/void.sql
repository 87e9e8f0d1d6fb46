-- Makes void the claims of this owner that went unanswered, behind claims_over.sql: one that is still on
-- its way takes nothing when it arrives (R4). Nothing if there is none.
-- $1 owner, $2 the last of them, 0 = none
INSERT INTO pacht.voided AS v (owner, claim, at)
SELECT $1::text, $2::bigint, statement_timestamp()
WHERE $2::bigint > 0
ON CONFLICT (owner) DO UPDATE
SET claim = greatest(v.claim, excluded.claim),
    at = excluded.at;
