-- The database's clock in whole milliseconds. Each part of a write transaction reads it once,
-- holding the write lock, and passes it to its statements as a parameter.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now;
