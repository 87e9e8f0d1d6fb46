package meter

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat, the same on all architectures that Go knows.
const tick = time.Second / 100

// stat is what /proc/PID/stat says of a process.
type stat struct {
	name   string
	parent int
	own    time.Duration // user and system time
	reaped time.Duration // the same of children that ended and were waited for
}

func readStat(pid int) (stat, bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, false
	}
	// The name stands in parentheses and may hold any character, parentheses too.
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	f := strings.Fields(string(text[end+1:])) // f[0] is the third field, the state
	if len(f) < 15 {
		return stat{}, false
	}
	number := func(field int) int {
		n, _ := strconv.Atoi(f[field-3]) // the kernel writes numbers
		return n
	}
	return stat{
		name:   string(text[open+1 : end]),
		parent: number(4),
		own:    time.Duration(number(14)+number(15)) * tick,
		reaped: time.Duration(number(16)+number(17)) * tick,
	}, true
}

// ProcessCPU is the CPU time of a process and of its children that have ended; false if there
// is no such process.
func ProcessCPU(pid int) (time.Duration, bool) {
	s, ok := readStat(pid)
	return s.own + s.reaped, ok
}

// ServerCPU is the CPU time of a PostgreSQL server since its start, by the pid of its
// postmaster: its own, that of its children, and of those that have ended. False if it is
// unknown.
func ServerCPU(postmaster int) (time.Duration, bool) {
	for range 10 {
		before, ok := readStat(postmaster)
		if !ok {
			return 0, false
		}
		live := childrenCPU(postmaster)
		// A session that ended meanwhile would count twice or not at all: look again.
		if after, ok := readStat(postmaster); ok && after.reaped == before.reaped {
			return after.own + after.reaped + live, true
		}
	}
	return 0, false
}

func childrenCPU(parent int) (sum time.Duration) {
	all, _ := filepath.Glob("/proc/[1-9]*") // fails only on a bad pattern
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok && s.parent == parent {
			sum += s.own
		}
	}
	return sum
}

// postmasterOf is the parent of a session's process, if its title has all these parts.
func postmasterOf(session int, title []string) int {
	s, ok := readStat(session)
	if !ok || s.name != "postgres" {
		return 0
	}
	said, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(session), "cmdline"))
	if err != nil {
		return 0
	}
	for _, part := range title {
		if !bytes.Contains(said, []byte(part)) {
			return 0
		}
	}
	if p, ok := readStat(s.parent); !ok || p.name != "postgres" {
		return 0
	}
	return s.parent
}
