-- For the reconciler: few rows are pending, whatever the history.
CREATE INDEX payments_pending ON pacht.payments (payment_id)
WHERE status = 'pending';
