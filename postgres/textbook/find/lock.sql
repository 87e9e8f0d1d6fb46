-- One installation at a time: two CREATE OR REPLACE of one function would disturb each other.
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('textbook of ' || $1, 0));
