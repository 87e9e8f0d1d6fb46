//go:build !unix

package pgserver

import "syscall"

func unprivileged() *syscall.SysProcAttr { return nil }

func giveAway(...string) error { return nil }

func gone(int) bool { return false }
