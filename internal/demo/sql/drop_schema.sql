-- Removes all that a run made on PostgreSQL.
DROP SCHEMA IF EXISTS pacht CASCADE;
