package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/pacht-queue/pacht"
)

// obedient is a command that exits in order when it is asked to stop, with the code that its
// kind names: k75 with 75.
const obedient = `trap 'echo told to stop >&2; exit ${PACHT_KIND#?}' TERM
echo running >>seen
while :; do sleep 0.02; done
`

// Many programs exit with 0 on SIGTERM: that is no proof of the work.
func TestExitCodeOfACommandThatWasStoppedProvesNothing(t *testing.T) { // R10
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		wants := map[string]pacht.Attempt{
			"r0":   {Outcome: pacht.OutcomeFailed, NextStatus: pacht.Pending},
			"r75":  {Outcome: pacht.OutcomeFailed, NextStatus: pacht.Pending},
			"r100": {Outcome: pacht.OutcomeFailed, NextStatus: pacht.Pending},
			"h0":   {Outcome: pacht.OutcomeUnknown, NextStatus: pacht.Stuck},
			"h100": {Outcome: pacht.OutcomeUnknown, NextStatus: pacht.Stuck},
		}
		ids, flags := map[string]string{}, []string{"--queue", "default=5", "--timeout", "400ms"}
		for kind := range wants {
			policy := "retry"
			if kind[0] == 'h' {
				policy = "hold"
			}
			ids[kind] = s.enqueue(kind, "--on-crash", policy)
			flags = append(flags, "--kind", kind)
		}
		w := s.work(s.script(obedient), flags...)
		db := s.store()
		for kind, want := range wants {
			got := attempts(t, db, ids[kind], 1)[0]
			if got.Outcome != want.Outcome || got.NextStatus != want.NextStatus {
				t.Errorf("%s: %s, then %s; want %s, then %s", kind, got.Outcome, got.NextStatus, want.Outcome, want.NextStatus)
			}
			for _, said := range []string{"exit code " + kind[1:], "told to stop", "timeout"} {
				if !strings.Contains(got.Error, said) {
					t.Errorf("%s: the error does not say %q: %s", kind, said, got.Error)
				}
			}
		}
		w.signal(syscall.SIGTERM)
		w.ends()
	})
}

func TestStopThatTheCommandObeysWithExitCode0ReturnsTheAttempt(t *testing.T) { // R10, S034
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("r0", "--max-attempts", "1")
	held := s.enqueue("h0", "--on-crash", "hold")
	w := s.work(s.script(obedient), "--kind", "r0", "--kind", "h0", "--queue", "default=2", "--grace", "0s")
	s.appears("seen", "running\nrunning")
	w.stop()
	if j := jobOf(t, s.store(), id); j.Status != pacht.Pending || j.Attempt != 0 {
		t.Errorf("it is %s, attempt %d", j.Status, j.Attempt)
	}
	if j := jobOf(t, s.store(), held); j.Status != pacht.Stuck {
		t.Errorf("under hold it is %s", j.Status)
	}
}

func TestCancelThatTheCommandObeysWithExitCode0CancelsTheJob(t *testing.T) { // R10
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("r0", "--ttl", "600ms")
	w := s.work(s.script(obedient), "--kind", "r0")
	s.appears("seen", "running")
	s.ok(ann("jobs", "cancel", id)...)
	got := attempts(t, s.store(), id, 1)[0]
	w.stop()
	if got.Outcome != pacht.OutcomeCancelled || !strings.Contains(got.Error, "told to stop") {
		t.Errorf("%+v", got)
	}
}
