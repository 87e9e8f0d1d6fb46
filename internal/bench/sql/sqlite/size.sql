-- The bytes of the file. Tables are not told apart, whatever the name in ?1.
SELECT c.page_count * s.page_size
FROM pragma_page_count AS c
CROSS JOIN pragma_page_size AS s
WHERE ?1 <> '';
