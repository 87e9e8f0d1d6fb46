-- Deletes the benchmark's own workers.
DELETE FROM pacht_workers
WHERE queues = '["bench"]';
