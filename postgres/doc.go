// Package postgres keeps jobs, leases and the ledger in PostgreSQL, 14 or later.
//
// A Store works on the caller's pool and opens at most five connections of its own: one for
// renewals, three for the rest of a worker's life (claim, settle, expire, steps, beats), one to
// listen for new jobs. So handlers that hold the whole pool starve neither. They are opened when
// first needed, with the pool's own configuration. Enqueues, questions and acts by hand go
// through the caller's pool; what belongs in a transaction goes through the caller's transaction.
//
// Nothing relies on the state of a session, on search_path, or on prepared statements that
// outlive a transaction, except Listen, without which jobs are found by polling: it all works
// through a pooler in transaction mode.
package postgres
