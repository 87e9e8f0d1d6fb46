-- Stamps a pass that was made in several pages, with what the longest of them took. Leases that
-- could not be closed do not bring the next pass forward: it would meet them again at once.
-- $1 by, $2 took in milliseconds, $3 period in milliseconds
UPDATE pacht.watch AS w
SET passed_at = statement_timestamp(),
    passed_by = $1::text,
    took_ms = $2::integer,
    next_at = greatest(
        statement_timestamp() + least(20 * $2::integer::bigint, $3::bigint) * interval '1 millisecond',
        least(
            (SELECT min(l.lease_until) FROM pacht.leases AS l WHERE l.status = 'Processing' AND l.lease_until > statement_timestamp()),
            statement_timestamp() + greatest($3::bigint, least(100 * $2::integer::bigint, 300000)) * interval '1 millisecond'))
WHERE w.watch_id = 1
RETURNING ceil(extract(epoch FROM w.next_at - statement_timestamp()) * 1000000)::bigint;
