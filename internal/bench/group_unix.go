//go:build unix && !linux

package bench

import "syscall"

// ownGroup puts a child into a process group of its own, so that Ctrl-C reaches only us and we
// end the children in order. Should we die without doing so, its standard input ends.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
