// Package lab is what the fault tests share: sizes and seeds, a recorder that handlers write to
// and that is never killed, a fleet of worker processes that can be killed, frozen and thawed,
// and the audit that reads database and recorder afterwards.
//
//	recorder <-- begin, effect, end -- handlers in worker processes --> database
//	    |                                                                  |
//	    +------------------------------> audit <---------------------------+
//
// It runs on Linux: children die with the test by a signal of the kernel.
package lab
