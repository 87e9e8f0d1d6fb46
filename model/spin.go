package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed lease.pml
var model []byte

// answer is what spin found.
type answer struct {
	broken string // the invariant that broke; "" if all held
	states int64
	depth  int64
	cpu    time.Duration
	trail  string // the steps to it
	err    error  // there is no answer
}

// differs says how an answer differs from the one that the check must have; "" if it does not.
func (c check) differs(a answer) string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.broken == c.want:
		return ""
	case a.broken == "":
		return c.want + " holds"
	}
	return a.broken + " is broken"
}

// memory is what one search may use, in MB. A search that needs more ends without an answer.
const memory = "3000"

// run has spin write the program that searches, compiles it, and runs it, in a folder of its own.
func (c check) run(ctx context.Context) (a answer) {
	dir, err := os.MkdirTemp("", "pacht-model-")
	if err != nil {
		return answer{err: err}
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "lease.pml"), model, 0o600); err != nil {
		return answer{err: err}
	}
	call := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState != nil {
			a.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
		if err != nil && cmd.ProcessState == nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		return string(out), err
	}
	var defines []string
	for _, s := range c.set {
		defines = append(defines, "-D"+s)
	}
	if out, err := call("spin", append(append([]string{"-a"}, defines...), "lease.pml")...); err != nil {
		a.err = fmt.Errorf("spin -a: %w: %s", err, out)
		return a
	}
	compile, search := c.flags()
	if out, err := call("gcc", append(compile, "-o", "pan", "pan.c")...); err != nil {
		a.err = fmt.Errorf("gcc: %w: %s", err, out)
		return a
	}
	out, err := call("./pan", search...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		a.err = err
		return a
	}
	a.read(out)
	if a.broken != "" && a.broken != c.want {
		a.trail, _ = call("spin", append(append([]string{"-t", "-p"}, defines...), "lease.pml")...) // it is only told
	}
	return a
}

// flags are those of the compiler and of the program that searches.
func (c check) flags() (compile, search []string) {
	compile = []string{"-w", "-DNOREDUCE", "-DMEMLIM=" + memory}
	switch c.way {
	case shortest:
		return append(compile, "-O1", "-DSAFETY", "-DNOCLAIM", "-DBFS"), []string{"-E"}
	case fair:
		return append(compile, "-O2", "-DNFAIR=3"), []string{"-a", "-f", "-m1000000"}
	}
	return append(compile, "-O2", "-DSAFETY", "-DNOCLAIM"), []string{"-E", "-m1000000"}
}

var (
	violated = regexp.MustCompile(`assertion violated \(?([a-z_]+)`)
	stored   = regexp.MustCompile(`(?m)^\s*(\d+(?:\.\d+)?(?:e\+\d+)?) states, stored`)
	reached  = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
)

// read takes in what the search printed. A search that did not look everywhere is no answer.
func (a *answer) read(out string) {
	depth, states := reached.FindStringSubmatch(out), stored.FindStringSubmatch(out)
	if depth == nil || states == nil {
		a.err = fmt.Errorf("the search gave no answer: %s", last(out))
		return
	}
	a.depth, _ = strconv.ParseInt(depth[1], 10, 64)
	n, _ := strconv.ParseFloat(states[1], 64) // both are digits, by the expression
	a.states = int64(n)
	found := violated.FindStringSubmatch(out)
	switch {
	case depth[2] == "0" && (strings.Contains(out, "Search not completed") || strings.Contains(out, "max search depth too small")):
		a.err = fmt.Errorf("the search is not complete: %s", last(out))
	case depth[2] == "0":
	case found != nil:
		a.broken = found[1]
	case strings.Contains(out, "acceptance cycle"):
		a.broken = "no_job_forgotten"
	default:
		a.err = fmt.Errorf("spin found an error that is not known here: %s", last(out))
	}
}

// last is the end of an output.
func last(out string) string {
	out = strings.TrimSpace(out)
	return out[max(0, len(out)-600):]
}
