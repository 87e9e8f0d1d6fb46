-- The leases as the textbook spells them. Auto-updatable: an UPDATE of it is an UPDATE of
-- the lease row itself, so that two sessions meet at the row's lock and the second one looks
-- at the WHERE again (R1). An INSTEAD OF trigger would let both win.
CREATE OR REPLACE VIEW pacht.payment_jobs AS
SELECT
    l.job_id AS id,
    l.status,
    l.lease_owner,
    l.lease_until
FROM pacht.leases AS l;
