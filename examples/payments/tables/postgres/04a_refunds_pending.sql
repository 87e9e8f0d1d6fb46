-- For the reconciler: few of them are pending.
CREATE INDEX refunds_pending ON pacht.refunds (refund_id)
WHERE status = 'pending';
