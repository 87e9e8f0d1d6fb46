-- How many movements do not sum up to zero in one currency: none, ever.
SELECT count(*)
FROM (
    SELECT movement
    FROM entries
    GROUP BY movement
    HAVING sum(amount_minor) <> 0 OR count(DISTINCT currency) <> 1 OR count(*) <> 2
) AS wrong;
