-- Instead of INSERT and DELETE only, never of UPDATE.
CREATE OR REPLACE TRIGGER textbook_elsewhere
INSTEAD OF INSERT OR DELETE ON pacht.payment_jobs
FOR EACH ROW
EXECUTE FUNCTION pacht.textbook_elsewhere();
