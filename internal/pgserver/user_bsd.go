//go:build unix && !linux

package pgserver

import "syscall"

// unprivileged keeps a child out of our process group, so that Ctrl-C reaches only us.
func unprivileged() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func giveAway(...string) error { return nil }
