// Package sqlite keeps jobs, leases and the ledger in a SQLite file, beside the business
// tables of the program that uses it. Any number of processes on one machine may share the
// file.
//
// Writes of one process go through one goroutine, which puts the work of many callers into
// one transaction (writer.go): a verb returns when its transaction is on the disk. Reads have
// connections of their own and never wait for a writer. Everybody who waits for the file's
// write lock waits in Go, for a short random time, because SQLite's own waiting lets one
// process starve another (lock.go).
//
// A write transaction of the program blocks every other write on the file, renewals too: it
// must begin IMMEDIATE and be short, less than a third of the shortest TTL. Begun on DB() it
// does the first by itself. A verb of the store that is called while the same goroutine has
// such a transaction open would wait for itself; it is refused with pacht.ErrInTransaction.
// Called from another goroutine it waits, at most Config.LockWait, and is refused then.
// What belongs into the transaction takes Store.Tx.
//
// The database's clock is the clock of the machine.
package sqlite
