// Package pacht is a job queue in the database you already have, for work that must not be
// lost and must not be done by two owners at once. Pacht is German for a lease: the right to
// hold a thing for a limited time.
//
// # The life of a job
//
// Client.Enqueue, or EnqueueTx in the transaction of your business rows, writes a job, which
// never changes, and its lease, which is vacant: Pending.
//
// A worker claims it by one atomic conditional UPDATE: the lease gets an owner, an end
// (lease_until, by the database's clock), one more attempt, and the next token. The job is
// Processing, and nobody else can have it.
//
// While the handler runs, renewals move lease_until ahead. A worker that cannot renew cancels
// its handler before lease_until; a worker that is dead cannot renew at all.
//
// The handler's answer is settled: Completed; Failed, and Pending again after a backoff, or
// Dead at its last attempt; Snoozed; Cancelled; or Unknown, and then the job is Stuck, for a
// person or the reconciler, and never retried blindly. Every write carries the token, so
// that a holder who was thought dead and comes back changes nothing: it gets ErrLeaseLost.
//
// If nobody settles it, the Stuck Watcher finds Processing past lease_until and closes the
// lease as Expired: Pending again, or Stuck, as the job's crash policy and its caps say.
//
// What a handler does to the outside and cannot be rolled back, a charge or a mail, is an effect
// (package effect): its intent is written before the call, its answer after it, and an attempt
// that finds no answer asks the provider before anybody calls again.
//
// Each closed lease is one row of the ledger, written from the locked lease row in the same
// statement: who held it, from when to when, how it ended, what followed.
//
//	         enqueue
//	            |
//	            v    claim: one UPDATE, token + 1, attempt + 1
//	+------> Pending ------------------------------> Processing <--+ renew
//	|           ^                                     |  |  |  |___|
//	|           |  fail, snooze, release, expire      |  |  |
//	|           +-------------------------------------+  |  +--> Completed
//	|                                                    |  +--> Dead, Cancelled
//	|  retry by hand     unknown, expire at a cap        |
//	+----------------- Stuck <---------------------------+
//
// # Where to read on
//
// lease.go has the rules R1 to R12 and the nouns; status.go the only transition table and
// the rule that closes a lease; store.go and effect.go what every verb promises;
// worker/worker.go how a worker runs; postgres/sql/claim.sql the statement at the centre.
package pacht
