-- Leaves the tables as autovacuum would, so that it does not come in the middle.
VACUUM (ANALYZE) pacht.jobs, pacht.leases, pacht.attempts;
