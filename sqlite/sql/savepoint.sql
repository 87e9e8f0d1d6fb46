-- Starts one caller's part of a group, or the enqueue inside a caller's transaction.
SAVEPOINT pacht_part;
