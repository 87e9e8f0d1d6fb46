-- Says, until this transaction is through with its commit, that a claim of this owner is under way:
-- claims_over.sql waits for it. Goes before the claim as a statement of its own: the claim's look at
-- what is void comes after it (R4).
-- $1 schema and owner
SELECT pg_advisory_xact_lock_shared(hashtextextended($1::text, 1));
