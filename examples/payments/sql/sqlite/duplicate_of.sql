-- The pairs of likely duplicates of which one is payment ?1, as duplicates.sql lists all of them:
-- one payer, one amount, both took money, created within ?2 milliseconds. The later one comes first.
SELECT
    CASE WHEN o.created_at > t.created_at OR o.created_at = t.created_at AND o.payment_id > t.payment_id THEN o.payment_id ELSE t.payment_id END AS later,
    CASE WHEN o.created_at > t.created_at OR o.created_at = t.created_at AND o.payment_id > t.payment_id THEN t.payment_id ELSE o.payment_id END AS earlier,
    t.amount_minor, t.currency
FROM payments t
JOIN payments o ON o.payer = t.payer
    AND o.amount_minor = t.amount_minor
    AND o.currency = t.currency
    AND o.payment_id <> t.payment_id
    AND o.created_at < t.created_at + ?2
    AND o.created_at > t.created_at - ?2
WHERE t.payment_id = ?1
  AND t.payer <> ''
  AND o.payer <> ''
  AND t.status = 'succeeded'
  AND o.status = 'succeeded'
ORDER BY later, earlier
LIMIT 100;
