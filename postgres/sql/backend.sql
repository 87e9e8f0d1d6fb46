-- Answers the process of the server that serves this session.
SELECT pg_backend_pid();
