-- The refunds of one payment.
CREATE INDEX refunds_payment ON pacht.refunds (payment_id);
