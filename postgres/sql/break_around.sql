-- Undoes the caller's whole transaction, also around a savepoint and after an error, and
-- opens an empty one in its place, which break.sql breaks: so nothing of it can be committed,
-- and no later statement of the caller runs outside a transaction (R4).
ROLLBACK AND CHAIN;
