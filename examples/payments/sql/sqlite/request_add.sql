-- Takes an idempotency key of our API, unless it is taken.
INSERT INTO requests (scope, key, fingerprint, answer)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (scope, key) DO NOTHING;
