-- Makes void the claims of this owner that went unanswered, behind claims_over.sql: one that is still on
-- its way takes nothing when it arrives (R4). Nothing if there is none.
-- $1 owner, $2 the store's number, $3 the last of them, 0 = none
INSERT INTO pacht.voided AS v (owner, store, claim, at)
SELECT $1::text, $2::bigint, $3::bigint, statement_timestamp()
WHERE $3::bigint > 0
ON CONFLICT (owner, store) DO UPDATE
SET claim = greatest(v.claim, excluded.claim),
    at = excluded.at;
