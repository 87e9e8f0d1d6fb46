//go:build !unix

package demo

import (
	"errors"
	"os"
	"syscall"
)

var errNoStop = errors.New("this system cannot stop a process and wake it again; the demo needs Linux, macOS or BSD")

func (c *child) freeze() error { return errNoStop }
func (c *child) thaw() error   { return errNoStop }

func ownGroup() *syscall.SysProcAttr { return nil }

// TerminalWidth is 0: plain lines.
func TerminalWidth(*os.File) int { return 0 }
