-- Counts a webhook that was refused: one row for each reason, however many come.
INSERT INTO pacht.events AS e (event_id, kind, payload_hash, verdict, why)
VALUES ($1, 'refused', $2, 'refused', $3)
ON CONFLICT (event_id) DO UPDATE
SET seen = e.seen + 1,
    payload_hash = excluded.payload_hash,
    why = excluded.why,
    last_at = statement_timestamp();
