-- From here on the leases have no trigger that looks at hand-written heartbeats.
DROP TRIGGER IF EXISTS textbook_2_heartbeat ON pacht.leases;
