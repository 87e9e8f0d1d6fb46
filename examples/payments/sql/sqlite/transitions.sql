-- What became of one payment, oldest first.
SELECT t.rev, t.from_status, t.to_status, t.charge_id, t.said_by, t.why, t.evidence, t.at AS at_ms
FROM transitions t
WHERE t.payment_id = ?1
ORDER BY t.rev;
