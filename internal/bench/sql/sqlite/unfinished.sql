-- How many jobs are unfinished.
SELECT count(*)
FROM pacht_leases;
