-- Undoes the whole group.
ROLLBACK;
