-- Rows of transitions are only added.
CREATE TRIGGER keep_transitions_update BEFORE UPDATE ON transitions
BEGIN
    SELECT RAISE(ABORT, 'rows of transitions are never changed');
END;
