-- The events on one payment.
CREATE INDEX events_payment ON events (payment_id);
