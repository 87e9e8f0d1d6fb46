-- Gives out ids for jobs that COPY will store.
-- $1 the name of the sequence of job ids, $2 how many
SELECT nextval($1::text::regclass)
FROM generate_series(1, $2::bigint);
