//go:build faultlab

package clock

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// SkewVariable names the environment variable that sets this process's clocks wrong, in builds
// with the tag faultlab alone. Its value is a list, separated by commas, of
//
//	wall=+1h            the wall clock is an hour ahead, from the start
//	wall=-10m@3s        it jumps back 10 minutes 3 seconds after the start
//	boot=+10m@FILE      boot time jumps when that file appears: the machine was suspended, and
//	                    the monotonic clock did not count it
//
// Timers, deadlines of contexts and sockets go by the machine's own monotonic clock, as they do
// on a machine whose wall clock was set.
const SkewVariable = "PACHT_CLOCK"

func init() {
	value := os.Getenv(SkewVariable)
	if value == "" {
		return
	}
	skews, err := parseSkews(value, time.Now())
	if err != nil {
		panic(SkewVariable + ": " + err.Error())
	}
	install(skews)
}

// skew is one wrong clock.
type skew struct {
	of    string // wall or boot
	by    time.Duration
	after time.Time // jumps then; zero: at once, or when file appears
	file  string
	on    atomic.Bool
}

func parseSkews(value string, start time.Time) ([]*skew, error) {
	var all []*skew
	for each := range strings.SplitSeq(value, ",") {
		of, what, ok := strings.Cut(each, "=")
		if !ok || of != "wall" && of != "boot" {
			return nil, fmt.Errorf("%q: want wall=... or boot=...", each)
		}
		by, when, jumps := strings.Cut(what, "@")
		d, err := time.ParseDuration(by)
		if err != nil {
			return nil, fmt.Errorf("%q: want a duration with its sign, such as +10m: %w", each, err)
		}
		s := &skew{of: of, by: d}
		if after, err := time.ParseDuration(when); jumps && err == nil {
			s.after = start.Add(after)
		} else if jumps && strings.HasPrefix(when, "/") {
			s.file = when
		} else if jumps {
			return nil, fmt.Errorf("%q: want a duration or the absolute path of a file after @", each)
		}
		all = append(all, s)
	}
	return all, nil
}

// now is how far the clock is off. What has jumped does not jump back.
func (s *skew) now() time.Duration {
	switch {
	case s.on.Load():
	case s.file != "":
		if _, err := os.Stat(s.file); err != nil {
			return 0
		}
	case time.Now().Before(s.after):
		return 0
	}
	s.on.Store(true)
	return s.by
}

// install puts the wrong clocks behind the door. A wall clock that may be off is read without
// its monotonic part: Go's arithmetic would believe that, and nobody would see the jump.
// Boot time counts on beside it, as it does on a real machine.
func install(skews []*skew) {
	off := func(of string) (d time.Duration) {
		for _, s := range skews {
			if s.of == of {
				d += s.now()
			}
		}
		return d
	}
	for _, s := range skews {
		if s.of == "wall" {
			wall = func() time.Time { return time.Now().Round(0).Add(off("wall")) }
		}
	}
	boot = func() time.Duration { return bootTime() + off("boot") }
}
