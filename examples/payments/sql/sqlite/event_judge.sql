-- What an event did, or why it did nothing.
UPDATE events
SET verdict = ?2,
    why = ?3,
    payment_id = ?4,
    charge_id = ?5,
    payload_hash = ?6
WHERE event_id = ?1;
