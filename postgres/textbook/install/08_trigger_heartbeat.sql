-- Fires after textbook_1_lease, by its name, and only if that one took or closed nothing.
CREATE OR REPLACE TRIGGER textbook_2_heartbeat
BEFORE UPDATE OF lease_until ON pacht.leases
FOR EACH ROW
WHEN (NEW.rev = OLD.rev AND NEW.token = OLD.token AND NEW.status = OLD.status)
EXECUTE FUNCTION pacht.textbook_heartbeat();
