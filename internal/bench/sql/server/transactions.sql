-- How many transactions this database has seen.
SELECT d.xact_commit + d.xact_rollback
FROM pg_stat_database AS d
WHERE d.datname = current_database();
