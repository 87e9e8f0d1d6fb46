-- The events on one payment, or all of them if it is empty, in order of arrival.
SELECT e.event_id, e.kind, e.payment_id, e.charge_id, e.verdict, e.why, e.seen, (extract(epoch FROM e.received_at) * 1000)::bigint AS received_ms
FROM pacht.events e
WHERE $1 = '' OR e.payment_id = $1
ORDER BY e.received_at, e.event_id
LIMIT $2;
