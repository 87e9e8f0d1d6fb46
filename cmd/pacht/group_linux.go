package main

import "syscall"

// groupAttr also lets the kernel kill the child when we die: without a worker nobody renews
// its lease.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
