-- Entries are only added.
CREATE TRIGGER keep_entries BEFORE UPDATE OR DELETE OR TRUNCATE ON pacht.entries
FOR EACH STATEMENT EXECUTE FUNCTION pacht.keep_ledger();
