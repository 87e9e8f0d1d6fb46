-- Ends the caller's session: inside a savepoint a failed statement breaks only what is
-- inside, and the rest could still be committed (R4).
SELECT pg_terminate_backend(pg_backend_pid());
