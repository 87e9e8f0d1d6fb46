-- Fires for hand-written SQL only: each statement of the product raises rev. It stands on the
-- columns that a claim or a reset names and a heartbeat does not, which tells a take-over, also
-- by the same owner, from a heartbeat.
CREATE OR REPLACE TRIGGER textbook_1_lease
BEFORE UPDATE OF job_id, status, lease_owner ON pacht.leases
FOR EACH ROW
WHEN (NEW.rev = OLD.rev)
EXECUTE FUNCTION pacht.textbook_lease();
