-- From here on the leases have no trigger that looks at hand-written claims and resets.
DROP TRIGGER IF EXISTS textbook_1_lease ON pacht.leases;
