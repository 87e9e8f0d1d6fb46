-- From now on nobody vacuums or analyses the leases.
ALTER TABLE pacht.leases SET (autovacuum_enabled = false);
