-- What stands under an idempotency key of our API.
SELECT fingerprint, answer
FROM pacht.requests
WHERE scope = $1
  AND key = $2;
