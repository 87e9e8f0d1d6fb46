-- Sends one notice, to prove that notices arrive.
-- $1 channel, $2 what it says
SELECT pg_notify($1::text, $2::text)::text;
