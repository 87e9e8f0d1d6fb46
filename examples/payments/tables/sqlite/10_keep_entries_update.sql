-- Rows of entries are only added.
CREATE TRIGGER keep_entries_update BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'rows of entries are never changed');
END;
