-- How far the sweep of one target has got, if a page is due. Asked again under the write lock,
-- where it is the turn.
-- ?1 target, ?2 now, ?3 whether due or not
SELECT after_us, after_id, looking, whole, cost_us, whole_at <= ?2
FROM pacht_sweeps
WHERE target = ?1
    AND (?3 OR next_at <= ?2);
