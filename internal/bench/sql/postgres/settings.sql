-- What a reader of the result must know of the server.
SELECT
    'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)
    || ', fsync ' || current_setting('fsync')
    || ', synchronous_commit ' || current_setting('synchronous_commit')
    || ', full_page_writes ' || current_setting('full_page_writes')
    || ', shared_buffers ' || current_setting('shared_buffers')
    || ', max_wal_size ' || current_setting('max_wal_size');
