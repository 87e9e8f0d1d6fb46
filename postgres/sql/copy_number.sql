-- Gives out ids for jobs that COPY will store, in one row; the name is looked up once.
-- $1 the name of the sequence of job ids, $2 how many
SELECT array_agg(nextval(s.name))
FROM (SELECT $1::text::regclass AS name OFFSET 0) AS s
CROSS JOIN generate_series(1, $2::bigint);
