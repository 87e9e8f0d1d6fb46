//go:build unix

package demo

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeze stops a process where it is; thaw lets it go on.
func (c *child) freeze() error { return c.signal(syscall.SIGSTOP) }
func (c *child) thaw() error   { return c.signal(syscall.SIGCONT) }

// TerminalWidth is the width of the terminal behind a file; 0 if it is none.
func TerminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80
	}
	return int(size.Col)
}
