-- Undoes one part and leaves the others alone (R12).
ROLLBACK TO pacht_part;
