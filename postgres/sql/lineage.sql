-- Tells which history the server writes: whose it is, and its number, which each promotion
-- raises; 0 if it is in recovery and so writes none.
SELECT
    c.system_identifier,
    CASE
        WHEN pg_is_in_recovery() THEN 0
        ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
    END
FROM pg_control_system() AS c;
