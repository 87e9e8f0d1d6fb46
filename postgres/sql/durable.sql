-- Makes the commit of this transaction write to the log, so that it is answered only when
-- everything that the transaction saw is as durable as synchronous_commit says, on a standby
-- too: without a write of its own it would wait for nothing, and could repeat what a commit
-- has done that still waits. Says true, and writes nothing, on a standby, which may be behind.
SELECT
    pg_is_in_recovery(),
    CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'pacht', '') END IS NULL;
