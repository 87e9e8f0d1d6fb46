-- Payments of one payer over one amount that both took money within $1 milliseconds: perhaps the
-- payer pressed twice. The later one of each pair.
SELECT b.payment_id, a.payment_id AS earlier, b.amount_minor, b.currency
FROM pacht.payments a
JOIN pacht.payments b ON b.payer = a.payer
    AND b.amount_minor = a.amount_minor
    AND b.currency = a.currency
    AND b.payment_id <> a.payment_id
    AND (b.created_at > a.created_at OR b.created_at = a.created_at AND b.payment_id > a.payment_id)
    AND b.created_at < a.created_at + $1::bigint * interval '1 millisecond'
WHERE a.payer <> ''
  AND a.status = 'succeeded'
  AND b.status = 'succeeded'
ORDER BY b.payment_id, a.payment_id
LIMIT 1000;
