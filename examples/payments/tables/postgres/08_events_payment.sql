-- The events on one payment.
CREATE INDEX events_payment ON pacht.events (payment_id);
