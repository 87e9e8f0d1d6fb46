-- For the reconciler: few of them are pending.
CREATE INDEX refunds_pending ON refunds (refund_id)
WHERE status = 'pending';
