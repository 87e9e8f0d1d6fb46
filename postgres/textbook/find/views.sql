-- In which schemas a view payment_jobs over this schema's leases stands.
SELECT DISTINCT vn.nspname
FROM pg_catalog.pg_rewrite AS r
JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class
JOIN pg_catalog.pg_namespace AS vn ON vn.oid = v.relnamespace
JOIN pg_catalog.pg_depend AS d ON d.objid = r.oid
    AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
    AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
JOIN pg_catalog.pg_class AS l ON l.oid = d.refobjid
JOIN pg_catalog.pg_namespace AS ln ON ln.oid = l.relnamespace
WHERE v.relname = 'payment_jobs'
    AND v.relkind = 'v'
    AND l.relname = 'leases'
    AND ln.nspname = $1
ORDER BY vn.nspname;
