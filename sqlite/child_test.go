package sqlite

import "os"

// childProcess runs a role of a test in a process of its own, started by reexec.
func childProcess() (code int, ok bool) { return 0, false }

func exit(code int) { os.Exit(code) }
