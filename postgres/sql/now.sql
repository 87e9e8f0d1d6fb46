-- The database's clock.
SELECT statement_timestamp();
