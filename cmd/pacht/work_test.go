package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// script writes a shell script into the folder and answers how to work with it.
func (s *shell) script(text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "script.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *shell) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *shell) appears(name, text string) {
	s.t.Helper()
	until(s.t, name+" holds "+text, func() bool { return strings.Contains(s.read(name), text) })
}

// work starts a worker for kinds of jobs, all of whose times are short.
func (s *shell) work(command string, flags ...string) *process {
	s.t.Helper()
	args := append([]string{"work", "--poll", "20ms"}, flags...)
	return s.start(append(args, "--", command)...)
}

func TestExitCodeOfTheCommandDecidesWhatBecomesOfTheJob(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		kinds := []string{"done", "json", "later", "never", "again", "signal", "quiet"}
		script := s.script(`case $PACHT_KIND in
done)   echo some text; echo ignored >&2;;
json)   echo '{"n": 9007199254740993, "h": "<b>"}';;
later)  test "$PACHT_TOKEN" = 1 && exit 75; echo '"after a snooze"';;
never)  echo no use >&2; exit 100;;
again)  echo "half an output"; echo try $PACHT_ATTEMPT of $PACHT_MAX_ATTEMPTS >&2; exit 3;;
signal) kill -USR1 $$;;
quiet)  exit 1;;
esac
`)
		ids, flags := map[string]string{}, []string{"--queue", "default=4", "--snooze", "1ms"}
		for _, k := range kinds {
			args := []string{k}
			if k != "later" && k != "never" {
				args = append(args, "--max-attempts", "1")
			}
			ids[k] = s.enqueue(args...)
			flags = append(flags, "--kind", k)
		}
		db := s.store()
		w := s.work(script, flags...)
		for k, want := range map[string]pacht.Status{"done": pacht.Completed, "json": pacht.Completed, "later": pacht.Completed,
			"never": pacht.Dead, "again": pacht.Dead, "signal": pacht.Dead, "quiet": pacht.Dead} {
			becomes(t, db, ids[k], want)
		}
		w.stop()
		for k, want := range map[string]pacht.Attempt{
			"done":   {Outcome: pacht.OutcomeCompleted, Attempt: 1, Output: []byte(`"some text"`)},
			"json":   {Outcome: pacht.OutcomeCompleted, Attempt: 1, Output: []byte(`{"n": 9007199254740993, "h": "<b>"}`)},
			"never":  {Outcome: pacht.OutcomeFailed, Attempt: 1, Error: "exit code 100: no use"},
			"again":  {Outcome: pacht.OutcomeFailed, Attempt: 1, Error: "exit code 3: try 1 of 1", Output: []byte(`"half an output"`)},
			"signal": {Outcome: pacht.OutcomeFailed, Attempt: 1, Error: "signal: user defined signal 1"},
			"quiet":  {Outcome: pacht.OutcomeFailed, Attempt: 1, Error: "exit code 1"},
		} {
			got := attempts(t, db, ids[k], 1)[0]
			if got.Outcome != want.Outcome || got.Attempt != want.Attempt || got.Error != want.Error || string(got.Output) != string(want.Output) {
				t.Errorf("%s: %+v (output %s), want %+v (output %s)", k, got, got.Output, want, want.Output)
			}
		}
		// A snooze uses no attempt (R5).
		later := attempts(t, db, ids["later"], 2)
		if later[0].Outcome != pacht.OutcomeSnoozed || later[1].Outcome != pacht.OutcomeCompleted || later[1].Attempt != 1 || string(later[1].Output) != `"after a snooze"` {
			t.Errorf("snoozed: %+v", later)
		}
	})
}

func TestFailedJobIsRetriedUntilItsAttemptsAreUsed(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--max-attempts", "2")
	db := s.store()
	w := s.work(s.script("exit 1"), "--kind", "k")
	becomes(t, db, id, pacht.Dead)
	w.stop()
	if got := attempts(t, db, id, 2); len(got) != 2 || got[0].NextStatus != pacht.Pending || got[1].Attempt != 2 {
		t.Errorf("%+v", got)
	}
}

func TestSnoozeGrowsEachTime(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k")
	db := s.store()
	w := s.work(s.script("exit 75"), "--kind", "k", "--snooze", "20ms", "--snooze-max", "80ms")
	rows := attempts(t, db, id, 5)
	w.stop()
	for i, want := range []time.Duration{20, 40, 80, 80, 80} {
		want *= time.Millisecond
		got := rows[i].NextRunAt.Sub(rows[i].EndedAt)
		if got < want*8/10 || got > want*12/10 || rows[i].Attempt != 1 {
			t.Errorf("snooze %d was for %s, want about %s; attempt %d", i, got, want, rows[i].Attempt)
		}
	}
}

func TestCommandGetsArgsUnchangedAndKnowsItsLease(t *testing.T) { // S073
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		const args = `{"id": 3889108265204450030,  "big":9007199254740993, "x":1e400, "z":-0, "t":"<é\u00e9>"}`
		id := s.enqueue("k", args, "--max-attempts", "7", "--ttl", "90500ms", "--queue", "q1")
		w := s.work(s.script(`cat >args; env | grep ^PACHT_ | grep -v -e BE_THE -e PACHT_DB= >env; echo >ready`), "--kind", "k", "--queue", "q1")
		becomes(t, s.store(), id, pacht.Completed)
		w.stop()
		if got := s.read("args"); got != args {
			t.Errorf("args arrived as %s", got)
		}
		for _, want := range []string{"PACHT_JOB_ID=" + id, "PACHT_TOKEN=1", "PACHT_KIND=k", "PACHT_QUEUE=q1", "PACHT_ATTEMPT=1",
			"PACHT_MAX_ATTEMPTS=7", "PACHT_CRASHES=0", "PACHT_LEASE_SECONDS=90.5", "PACHT_OWNER="} {
			if !strings.Contains(s.read("env"), want) {
				t.Errorf("the environment has no %s:\n%s", want, s.read("env"))
			}
		}
	})
}

// The lease is taken away by hand; the command is asked to stop, then the job runs again.
func TestLostLeaseSignalsTheCommand(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		id := s.enqueue("k", "--ttl", "2s")
		w := s.work(s.script(`if test "$PACHT_TOKEN" != 1; then exit 0; fi
trap 'echo asked >>seen; exit 1' TERM
echo running >>seen
while :; do sleep 0.05; done
`), "--kind", "k")
		s.appears("seen", "running")
		out := s.ok("jobs", "release", id, "--by", "ann", "--reason", "it hangs")
		if !strings.Contains(out, "token 1") || !strings.Contains(out, "just read") {
			t.Errorf("release does not say which lease it took: %s", out)
		}
		s.appears("seen", "asked")
		db := s.store()
		becomes(t, db, id, pacht.Completed)
		w.stop()
		got := attempts(t, db, id, 2)
		if got[0].Outcome != pacht.OutcomeReleased || got[1].Attempt != 1 || got[1].Token != 2 {
			t.Errorf("history: %+v", got)
		}
	})
}

func TestCommandThatIgnoresTheSignalIsKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--max-attempts", "1")
	w := s.work(s.script(`trap '' TERM
( trap '' TERM; while :; do sleep 0.05; date >>beat; done ) &
while :; do sleep 0.05; done
`), "--kind", "k", "--timeout", "200ms", "--kill-after", "100ms")
	db := s.store()
	becomes(t, db, id, pacht.Dead)
	w.stop()
	if got := attempts(t, db, id, 1)[0]; !strings.Contains(got.Error, "killed") || !strings.Contains(got.Error, "timeout") {
		t.Errorf("error %q", got.Error)
	}
	s.quiet("beat") // what it had started is gone too
}

func TestWhatACommandLeavesBehindIsKilledWhenItEnds(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k")
	w := s.work(s.script(`( trap '' TERM HUP; while :; do sleep 0.02; date >>beat; done ) >/dev/null 2>&1 &
while ! test -s beat; do sleep 0.02; done`), "--kind", "k")
	becomes(t, s.store(), id, pacht.Completed)
	s.quiet("beat")
	w.stop()
}

func TestCancelRequestStopsTheCommandAndCancelsTheJob(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--ttl", "600ms")
	w := s.work(s.script("echo running >>seen; exec sleep 60"), "--kind", "k")
	s.appears("seen", "running")
	if out := s.ok("jobs", "cancel", id, "--by", "ann", "--reason", "not needed"); !strings.Contains(out, "requested") {
		t.Errorf("%s", out)
	}
	becomes(t, s.store(), id, pacht.Cancelled)
	w.stop()
}

func TestStopLetsARunningCommandEnd(t *testing.T) { // S037
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k")
	other := s.enqueue("k")
	w := s.work(s.script(`echo running >>seen; while ! test -e go; do sleep 0.02; done; echo ended`), "--kind", "k")
	s.appears("seen", "running")
	w.signal(syscall.SIGTERM)
	until(t, "the stop is announced", func() bool { return strings.Contains(w.errs.String(), "stopping in order") })
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := w.ends(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	db := s.store()
	if j := jobOf(t, db, id); j.Status != pacht.Completed {
		t.Errorf("the running job is %s", j.Status)
	}
	if j := jobOf(t, db, other); j.Status != pacht.Pending || j.Attempt != 0 {
		t.Errorf("the other is %s, attempt %d", j.Status, j.Attempt)
	}
}

// timeout(1) signals its child and then its group, the child among it.
func TestSignalThatComesTwiceAtOnceIsOneStop(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	w := s.work("true", "--kind", "k")
	until(t, "it works", func() bool { return strings.Contains(w.errs.String(), `"working"`) })
	w.signal(syscall.SIGTERM)
	w.signal(syscall.SIGINT)
	if code := w.ends(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestStopPastTheGraceReturnsTheJobWithItsAttempt(t *testing.T) { // S034, S035
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--max-attempts", "1")
	w := s.work(s.script("echo running >>seen; exec sleep 60"), "--kind", "k", "--grace", "0s")
	s.appears("seen", "running")
	w.signal(syscall.SIGINT)
	if code := w.ends(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if j := jobOf(t, s.store(), id); j.Status != pacht.Pending || j.Attempt != 0 || j.Token != 1 {
		t.Errorf("it is %s, attempt %d, token %d", j.Status, j.Attempt, j.Token)
	}
}

func TestSecondSignalEndsAtOnceAndTakesTheCommandAlong(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k")
	// The one that beats is a grandchild: killing the command alone would leave it.
	w := s.work(s.script(`trap '' TERM; echo running >>seen
( while :; do sleep 0.02; date >>beat; done ) &
while :; do sleep 0.02; done`), "--kind", "k", "--grace", "1h")
	s.appears("seen", "running")
	w.signal(syscall.SIGTERM)
	until(t, "the stop is announced", func() bool { return strings.Contains(w.errs.String(), "stopping in order") })
	until(t, "the second signal, which is no echo of the first, ends it", func() bool {
		_ = w.cmd.Process.Signal(syscall.SIGTERM) // fails once it has ended
		select {
		case <-w.done:
			return true
		default:
			return false
		}
	})
	if code := w.ends(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
	if j := jobOf(t, s.store(), id); j.Status != pacht.Processing {
		t.Errorf("the job is %s; it should be left to expire", j.Status)
	}
	s.quiet("beat")
}

// quiet waits until a file does not grow any more: two looks, of which the second comes ten
// beats later.
func (s *shell) quiet(name string) {
	s.t.Helper()
	end := time.Now().Add(patience)
	for size := -1; time.Now().Before(end); {
		now := len(s.read(name))
		if now == size {
			return
		}
		size = now
		time.Sleep(200 * time.Millisecond)
	}
	s.t.Errorf("%s goes on growing", name)
}

func TestKilledWorkerTakesTheCommandAlongAndTheJobRunsAgain(t *testing.T) { // R6, R9
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--ttl", "400ms")
	script := s.script(`test "$PACHT_TOKEN" = 1 || exit 0
echo running >>seen; while :; do sleep 0.02; date >>beat; done`)
	w := s.work(script, "--kind", "k", "--no-watch")
	s.appears("seen", "running")
	w.signal(syscall.SIGKILL)
	w.ends()
	s.quiet("beat")
	watcher := s.start("watch", "--period", "100ms")
	db := s.store()
	got := attempts(t, db, id, 1)
	watcher.stop()
	if got[0].Outcome != pacht.OutcomeExpired || got[0].NextStatus != pacht.Pending {
		t.Errorf("history: %+v", got)
	}
	w2 := s.work(script, "--kind", "k")
	becomes(t, db, id, pacht.Completed)
	w2.stop()
}
