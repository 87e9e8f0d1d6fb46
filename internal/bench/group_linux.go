package bench

import "syscall"

// ownGroup puts a child into a process group of its own, so that Ctrl-C reaches only us and we
// end the children in order, and has the kernel kill it should we die without doing so.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
