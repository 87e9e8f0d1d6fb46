-- The view goes first; its own trigger goes with it.
DROP VIEW IF EXISTS pacht.payment_jobs;
