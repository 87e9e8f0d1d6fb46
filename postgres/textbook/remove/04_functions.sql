-- Nothing uses them any more.
DROP FUNCTION IF EXISTS
    pacht.textbook_lease(),
    pacht.textbook_heartbeat(),
    pacht.textbook_elsewhere(),
    pacht.textbook_fits(bigint, text, timestamptz),
    pacht.textbook_complete(bigint, bigint);
