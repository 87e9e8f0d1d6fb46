-- Statistics of the leases as they are now.
ANALYZE pacht.leases;
