// Package failover kills the primary of a pair of PostgreSQL servers under load and promotes the
// standby: a synchronous one, which has all that was answered, and an asynchronous one, which
// has not. Workers and those who enqueue come back by themselves.
package failover
