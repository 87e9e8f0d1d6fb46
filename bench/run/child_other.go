//go:build !linux

package run

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
