-- What was booked and what became of a payment is never changed.
CREATE FUNCTION pacht.keep_ledger() RETURNS trigger
LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME; END $$;
