-- What a reader of the result must know of the file.
SELECT
    'SQLite ' || sqlite_version()
    || ', journal_mode ' || j.journal_mode
    || ', synchronous ' || CASE s.synchronous WHEN 0 THEN 'off' WHEN 1 THEN 'normal' WHEN 2 THEN 'full' ELSE 'extra' END
FROM pragma_synchronous AS s
CROSS JOIN pragma_journal_mode AS j;
