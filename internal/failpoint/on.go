//go:build faultlab && unix

package failpoint

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// trap is what happens at a point.
type trap struct {
	action string // kill, stop or sleep
	at     int64  // at the passing of this number
	sleep  time.Duration
	passed atomic.Int64
}

// armed is read once: a process is told when it starts.
var armed = mustParse(os.Getenv("PACHT_FAILPOINT"))

// Here is a point that the process passes.
func Here(name string) {
	for _, t := range armed[name] {
		if t.passed.Add(1) == t.at {
			t.spring(name)
		}
	}
}

func (t *trap) spring(name string) {
	note(name + " " + t.action)
	switch t.action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // one's own process is always there
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		// Whichever thread takes the signal stops the others; on a busy machine it waits for its turn.
		_ = clock.Sleep(context.Background(), 500*time.Millisecond)
	case "sleep":
		_ = clock.Sleep(context.Background(), t.sleep)
	}
}

// note tells in one write, which outlives this process.
func note(line string) {
	path := os.Getenv("PACHT_FAILPOINT_LOG")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = file.WriteString(line + "\n")
		_ = file.Close() // what was written is in the kernel's hands
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "failpoint %s: %v\n", line, err)
	}
}

// mustParse ends a process whose order does not make sense: a test that meant to kill it must
// not go on as if it had.
func mustParse(orders string) map[string][]*trap {
	traps := map[string][]*trap{}
	for _, order := range strings.Split(orders, ",") {
		if order == "" {
			continue
		}
		name, t, err := parse(order)
		if err != nil {
			fmt.Fprintf(os.Stderr, "PACHT_FAILPOINT: %q: %v\n", order, err)
			os.Exit(2)
		}
		traps[name] = append(traps[name], t)
	}
	return traps
}

func parse(order string) (name string, t *trap, err error) {
	name, what, ok := strings.Cut(order, "=")
	if !ok {
		return "", nil, fmt.Errorf("want name=action@n")
	}
	t = &trap{at: 1}
	what, length, sleeps := strings.Cut(what, ":")
	action, at, counted := strings.Cut(what, "@")
	t.action = action
	if counted {
		if t.at, err = strconv.ParseInt(at, 10, 64); err != nil || t.at < 1 {
			return "", nil, fmt.Errorf("the passing %q: want a number from 1 on", at)
		}
	}
	switch {
	case t.action != "kill" && t.action != "stop" && t.action != "sleep":
		return "", nil, fmt.Errorf("the action %q: want kill, stop or sleep", t.action)
	case sleeps != (t.action == "sleep"):
		return "", nil, fmt.Errorf("a length goes with sleep, as in sleep@3:500ms")
	case sleeps:
		if t.sleep, err = time.ParseDuration(length); err == nil && t.sleep < 0 {
			err = fmt.Errorf("the length %s: want 0 or more", length)
		}
	}
	return name, t, err
}
