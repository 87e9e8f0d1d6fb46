//go:build unix

package pgserver

import (
	"errors"
	"syscall"
)

// gone says that there is no such process.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
