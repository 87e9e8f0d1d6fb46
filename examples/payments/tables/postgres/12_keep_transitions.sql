-- Transitions are only added.
CREATE TRIGGER keep_transitions BEFORE UPDATE OR DELETE OR TRUNCATE ON pacht.transitions
FOR EACH STATEMENT EXECUTE FUNCTION pacht.keep_ledger();
