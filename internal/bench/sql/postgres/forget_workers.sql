-- Deletes the benchmark's own workers.
DELETE FROM pacht.workers
WHERE queues = ARRAY['bench'];
