-- For likely duplicates: what one payer paid.
CREATE INDEX payments_payer ON payments (payer, amount_minor)
WHERE payer <> '';
