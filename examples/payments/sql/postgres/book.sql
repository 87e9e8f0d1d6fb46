-- One movement of money, from one account to another: its two entries sum up to zero, and it
-- can be booked once only.
INSERT INTO pacht.entries (movement, account, payment_id, amount_minor, currency)
VALUES ($1, $2, $4, $5::bigint, $6),
       ($1, $3, $4, -($5::bigint), $6);
