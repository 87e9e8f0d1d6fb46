-- Rows of transitions are only added.
CREATE TRIGGER keep_transitions_delete BEFORE DELETE ON transitions
BEGIN
    SELECT RAISE(ABORT, 'rows of transitions are never changed');
END;
