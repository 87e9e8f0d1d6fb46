-- The refunds of one payment.
CREATE INDEX refunds_payment ON refunds (payment_id);
