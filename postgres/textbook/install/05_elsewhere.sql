-- Jobs do not begin or end by INSERT and DELETE on the view.
CREATE OR REPLACE FUNCTION pacht.textbook_elsewhere()
RETURNS trigger
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $textbook$
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'a job is not inserted through %. Call: pacht enqueue, or the library''s Enqueue', TG_TABLE_NAME
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RAISE EXCEPTION 'job % is not deleted through %. Call: pacht jobs cancel % --by NAME --reason WHY', OLD.id, TG_TABLE_NAME, OLD.id
        USING ERRCODE = 'object_not_in_prerequisite_state';
END
$textbook$;
