//go:build !linux

package pgtest

import "syscall"

func unprivileged() *syscall.SysProcAttr { return nil }

func giveAway(...string) error { return nil }
