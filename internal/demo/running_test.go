package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// screenful is what a demo says, read while it runs.
type screenful struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screenful) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screenful) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// running is a demo with a program file and a folder for temporary files of its own, so that
// what it leaves behind can be told from what others do.
type running struct {
	t        *testing.T
	cmd      *exec.Cmd
	file     string
	temp     string
	out, err screenful
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{t: t, temp: t.TempDir(), file: filepath.Join(t.TempDir(), "pacht")}
	if err := os.Link(program, r.file); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(r.file, append([]string{"demo"}, args...)...)
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.temp, "PACHT_DB=sqlite:/not/to/be/looked/at.db")
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
	r.cmd.WaitDelay = 5 * time.Second // a child that lives on keeps our pipes open
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range r.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // of our own file; only after a failure
		}
	})
	return r
}

// wait answers the exit code; -1 if a signal ended it.
func (r *running) wait() int {
	r.t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("%v\n%s%s", err, r.out.String(), r.err.String())
	}
	return r.cmd.ProcessState.ExitCode()
}

// processes lists who runs our program file now.
func (r *running) processes() (pids []int) {
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, exe := range exes {
		if file, err := os.Readlink(exe); err == nil && file == r.file {
			var pid int
			if _, err := fmt.Sscanf(exe, "/proc/%d/exe", &pid); err != nil {
				r.t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func (r *running) nothingIsLeft() {
	r.t.Helper()
	if pids := r.processes(); len(pids) > 0 {
		r.t.Errorf("processes left behind: %v", pids)
	}
	left, err := os.ReadDir(r.temp)
	if err != nil || len(left) > 0 {
		r.t.Errorf("files left behind: %v, %v", left, err)
	}
}

func (r *running) until(what string, true func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !true(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain until %s\n%s%s", what, r.out.String(), r.err.String())
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (r *running) result() (res Result) {
	r.t.Helper()
	var keys map[string]any
	if err := json.Unmarshal([]byte(r.out.String()), &keys); err != nil {
		r.t.Fatalf("no JSON object: %v\n%s%s", err, r.out.String(), r.err.String())
	}
	want := []string{"payments", "completed", "lost", "double_charged", "repeated_calls", "attempts", "expired", "refused_late", "unknown", "healed", "breaks_open", "ledger_equal", "kills", "pauses", "seconds", "ok"}
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		r.t.Errorf("keys %v", got)
	}
	if err := json.Unmarshal([]byte(r.out.String()), &res); err != nil {
		r.t.Fatal(err)
	}
	return res
}
