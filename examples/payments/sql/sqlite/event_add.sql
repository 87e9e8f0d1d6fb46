-- Enters an event, or counts that it came again. Of two that come at once the second waits here
-- until the first has committed or not. The answer is what stands now.
INSERT INTO events AS e (event_id, kind, payload_hash, verdict)
VALUES (?1, ?2, ?3, 'new')
ON CONFLICT (event_id) DO UPDATE
SET seen = e.seen + 1,
    last_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
RETURNING verdict, payload_hash;
