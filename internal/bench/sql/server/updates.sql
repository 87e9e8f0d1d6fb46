-- How many rows of the leases were updated, and how many of them without touching an index, as
-- far as sessions have reported: they do at most once a second, and when they end.
SELECT t.n_tup_upd, t.n_tup_hot_upd
FROM pg_stat_user_tables AS t
WHERE t.relid = $1::text::regclass;
