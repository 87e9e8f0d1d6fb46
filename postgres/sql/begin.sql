-- Opens one of the store's own transactions, in READ COMMITTED whatever the server's default
-- is: under the stricter levels claims abort instead of skipping.
BEGIN ISOLATION LEVEL READ COMMITTED;
