-- Ends one of the store's own transactions after one of its statements failed.
ROLLBACK;
