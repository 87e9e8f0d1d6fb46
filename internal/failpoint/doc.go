// Package failpoint names the moments at which a process may die or stand still: between the
// claim and the settle, in the passes of the watcher, inside the stores' transactions.
//
// In a normal build Here is empty and inlined. Built with the tag "faultlab", it reads
//
//	PACHT_FAILPOINT="worker.claimed=kill@17,worker.settle.before=sleep@3:500ms"
//
// once, and kills the process with SIGKILL, stops it with SIGSTOP, or lets the caller sleep,
// when the point is passed for the n-th time (1 if it is left out). What is hit is first
// written, as "name action", to the file that PACHT_FAILPOINT_LOG names. A point has one place
// in the source; package scan lists them.
package failpoint
