// Package history writes down what the clients of a store see, each call with the time it was
// made and the time it returned, and asks whether one lease, kept by the rules R1 to R10, can
// have answered so. Porcupine looks for an order of the calls that explains every answer.
//
//	h := history.New()
//	client := h.Recorder(store, 0, begin)  // a pacht.Store; one client, one call at a time
//	...                                    // many clients, many connections, one History
//	findings := h.Check(0)                 // empty if an order exists for every job
//
// Jobs do not depend on each other, so each job's calls are looked at alone: a batch is one
// call for each of its rows. A call without an answer is open for ever: it may have happened at
// any time since it was made, or not at all. The model (lease.go, step*.go) is written from the
// rules, uses pacht.Next for the arithmetic, and never reads the database: what is read is a
// call of a client like any other.
package history
