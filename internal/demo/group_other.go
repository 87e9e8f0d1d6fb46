//go:build unix && !linux

package demo

import "syscall"

// ownGroup puts a child into a process group of its own, so that Ctrl-C reaches only us and we
// end the children in order. Should we die without doing so, the kernel wakes and hangs up
// a stopped child, because its group is orphaned, and its standard input ends.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
