-- What a payment became, who said so, and what they had seen.
INSERT INTO pacht.transitions (payment_id, rev, from_status, to_status, charge_id, said_by, why, evidence)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);
