-- What the connection string must have set on this connection.
SELECT
    (SELECT journal_mode FROM pragma_journal_mode) AS journal_mode,
    (SELECT synchronous FROM pragma_synchronous) AS synchronous,
    (SELECT timeout FROM pragma_busy_timeout) AS busy_timeout;
