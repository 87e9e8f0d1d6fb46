package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// What a command's exit code means. Others are failures.
const (
	childSnoozed = 75  // EX_TEMPFAIL: not now
	childDead    = 100 // no retry can mend it
)

// runner does jobs by starting a command for each.
type runner struct {
	path      string
	args      []string // with the command as the user named it first
	killAfter time.Duration
	snooze    pacht.Exponential
	log       *slog.Logger

	mu      sync.Mutex
	running map[*os.Process]bool
}

// handle runs the command for one job and says by its error how the job ended.
func (r *runner) handle(ctx context.Context, job *pacht.Held) error {
	stdout := &head{most: pacht.MaxArgsBytes}
	stderr := &tail{most: pacht.MaxErrorBytes}
	cmd := exec.Command(r.path, r.args[1:]...)
	cmd.Args[0] = r.args[0]
	cmd.Env = append(os.Environ(), jobEnv(job)...)
	cmd.Stdin = bytes.NewReader(job.Args)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// Whatever left the process group may hold the pipes open; it is not waited for.
	cmd.WaitDelay = time.Second
	// Not earlier: the job may have waited for its turn while its lease was lost.
	if ctx.Err() != nil {
		return fmt.Errorf("not started: %w", context.Cause(ctx))
	}
	state, stopped, err := r.run(ctx, cmd)
	if state == nil {
		return fmt.Errorf("start %s: %w", r.args[0], err)
	}
	if out := stdout.output(); out != nil {
		if err := job.SetOutput(out); err != nil {
			r.log.Warn("output of the command cannot be kept", "job", job.ID, "kind", job.Kind, "token", job.Token, "error", err)
		}
	}
	if stopped {
		return stoppedError(context.Cause(ctx), state, stderr)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) && state.Success() {
		return fmt.Errorf("run %s: %w", r.args[0], err)
	}
	return r.verdict(job, state, stderr)
}

// stoppedError is the end of a command that was signalled. Many programs exit with 0 on
// SIGTERM, so no exit code proves anything then: neither that the work is done nor that it is
// not. The error has no class, and the worker decides by the cause (R10).
func stoppedError(cause error, state *os.ProcessState, stderr *tail) error {
	return fmt.Errorf("%s (stopped because: %w)", failure(state, stderr), cause)
}

// failure is how a command ended and what it said last.
func failure(state *os.ProcessState, stderr *tail) string {
	if said := stderr.text(pacht.MaxErrorBytes - 256); said != "" {
		return describe(state) + ": " + said
	}
	return describe(state)
}

// verdict is what it means for the job that the command ended by itself.
func (r *runner) verdict(job *pacht.Held, state *os.ProcessState, stderr *tail) error {
	switch state.ExitCode() {
	case 0:
		return nil
	case childSnoozed:
		// Each claim raises the token, and a snooze gives the attempt back: what they differ by
		// is how often the job was put off (R2, R5).
		wait := clock.Jitter(r.snooze.Ceiling(int(job.Token) - job.Attempt + 1))
		r.log.Info("command asks for a snooze", "job", job.ID, "kind", job.Kind, "token", job.Token, "for", wait)
		return pacht.Snooze(wait)
	case childDead:
		return pacht.Permanent(errors.New(failure(state, stderr)))
	}
	return errors.New(failure(state, stderr))
}

func describe(state *os.ProcessState) string {
	if code := state.ExitCode(); code >= 0 {
		return fmt.Sprintf("exit code %d", code)
	}
	return state.String() // "signal: killed"
}

// jobEnv is what the command may want to know about its job and its lease.
func jobEnv(job *pacht.Held) []string {
	return []string{
		"PACHT_JOB_ID=" + job.ID.String(),
		"PACHT_TOKEN=" + job.Token.String(),
		"PACHT_KIND=" + job.Kind,
		"PACHT_QUEUE=" + job.Queue,
		"PACHT_OWNER=" + strings.ToValidUTF8(job.LeaseOwner, ""),
		"PACHT_ATTEMPT=" + strconv.Itoa(job.Attempt),
		"PACHT_MAX_ATTEMPTS=" + strconv.Itoa(job.MaxAttempts),
		"PACHT_CRASHES=" + strconv.Itoa(job.Crashes),
		"PACHT_LEASE_SECONDS=" + strconv.FormatFloat(job.TTL.Seconds(), 'f', -1, 64),
	}
}
