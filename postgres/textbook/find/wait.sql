-- Changing a table's triggers waits for every transaction that has written to it, and whoever
-- comes later waits behind: so not for long.
SET LOCAL lock_timeout = '500ms';
