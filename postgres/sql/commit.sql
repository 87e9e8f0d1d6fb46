-- Ends one of the store's own transactions, in the same message that began it.
COMMIT;
