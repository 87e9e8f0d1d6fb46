package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/pacht-queue/pacht"
)

var byAnn = []string{"--by", "ann", "--reason", "because"}

func ann(args ...string) []string { return append(args, byAnn...) }

// claim takes the lease of a job as some owner who then does nothing.
func (s *shell) claim(id string) pacht.JobInfo {
	s.t.Helper()
	db := s.store()
	j, ok, err := db.ClaimID(s.t.Context(), "somebody", jobOf(s.t, db, id).ID)
	if err != nil || !ok {
		s.t.Fatalf("claim job %s: %v, %v", id, ok, err)
	}
	return j
}

func TestActsByHandDoWhatTheySayAndRefuseTheRest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		db := s.store()
		id := s.enqueue("k", `{"a":1}`)
		status := func(want pacht.Status) {
			t.Helper()
			if j := jobOf(t, db, id); j.Status != want {
				t.Errorf("it is %s, want %s", j.Status, want)
			}
		}
		s.refused(exitRefused, []string{"retry", id, "Pending"}, ann("jobs", "retry", id)...)
		s.refused(exitRefused, []string{"release", id}, ann("jobs", "release", id)...)
		s.ok(ann("jobs", "cancel", id)...)
		status(pacht.Cancelled)
		s.refused(exitRefused, []string{"cancel", id, "Cancelled"}, ann("jobs", "cancel", id)...)
		s.ok(ann("jobs", "retry", id)...)
		status(pacht.Pending)

		held := s.claim(id)
		s.refused(exitRefused, []string{"resolve", id}, ann("jobs", "resolve", id, "--as", "Completed")...)
		s.refused(exitRefused, []string{"lease lost"}, ann("jobs", "release", id, "--token", "1")...)
		if out := s.ok(ann("jobs", "release", id, "--token", held.Token.String())...); strings.Contains(out, "just read") {
			t.Errorf("it says that it read the token it was given: %s", out)
		}
		status(pacht.Pending)
		s.ok(ann("jobs", "resolve", id, "--as", "Completed", "--output", `{"found":9007199254740993}`)...)
		status(pacht.Completed)
		s.refused(exitRefused, []string{"retry", id, "Completed"}, ann("jobs", "retry", id)...)

		for _, act := range [][]string{ann("jobs", "retry", "999"), ann("jobs", "cancel", "999"), ann("jobs", "release", "999"),
			ann("jobs", "resolve", "999", "--as", "Dead"), {"jobs", "show", "999"}} {
			s.refused(exitRefused, []string{"999", "no such job"}, act...)
		}

		out := s.ok("jobs", "show", id)
		for _, want := range []string{"by hand", "ann", "because", "retry", "cancel", "release", "resolve", "Resolved", `{"found":9007199254740993}`} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
}

func TestShowListsTheCallsToTheOutside(t *testing.T) { // R10
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k")
	held := s.claim(id)
	db := s.store()
	begun, err := db.BeginEffect(t.Context(), held.Ref(), pacht.EffectIntent{Name: "charge", Key: "key-1", Reference: "pay-1"})
	if err != nil {
		t.Fatal(err)
	}
	a := pacht.EffectAnswer{Job: held.ID, Name: "charge", Rev: begun.Effect.Rev, State: pacht.EffectUnknown, Error: "timed\x1b[31m out"}
	if _, err := db.AnswerEffect(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	out := s.ok("jobs", "show", id)
	for _, want := range []string{"calls to the outside", "charge", "unknown", "pay-1", "out"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("it prints what steers a terminal: %q", out)
	}
}

func TestTokenThatFencedAnActIsAlwaysInTheJSON(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k")
	for _, c := range []struct {
		want string
		args []string
	}{
		{`"token": "0"`, ann("jobs", "resolve", id, "--as", "Dead")}, // never claimed
		{`"token": null`, ann("jobs", "retry", id)},
		{`"token": null`, ann("jobs", "cancel", id)},
	} {
		if out := s.ok(append(c.args, "--json")...); !strings.Contains(out, c.want) {
			t.Errorf("pacht %q: no %s in %s", c.args, c.want, out)
		}
	}
}

func TestStatusMayBeGivenInAnyCase(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	first, second := s.enqueue("k", "--on-crash", "HOLD"), s.enqueue("k")
	if j := jobOf(t, s.store(), first); j.CrashPolicy != pacht.CrashHold {
		t.Errorf("crash policy %s", j.CrashPolicy)
	}
	s.ok(ann("queues", "set", "q", "--on-crash", "Hold")...)
	s.ok(ann("jobs", "resolve", first, "--as", "completed")...)
	s.ok(ann("jobs", "resolve", second, "--as", "DEAD", "--error", "no")...)
	db := s.store()
	if a, b := jobOf(t, db, first).Status, jobOf(t, db, second).Status; a != pacht.Completed || b != pacht.Dead {
		t.Errorf("resolved as %s and %s", a, b)
	}
	var rows []pacht.JobInfo
	s.document(&rows, exitOK, "jobs", "list", "--status", "dead")
	if len(rows) != 1 || rows[0].ID.String() != second {
		t.Errorf("listed: %+v", rows)
	}
	if out := s.ok("jobs", "prune", "--status", "dead,COMPLETED,Dead", "--older-than", "0s"); out != "Completed: 1 job deleted\nDead: 1 job deleted\n" {
		t.Errorf("pruned: %s", out)
	}
}

func TestDeadJobRunsAgainAfterARetryByHand(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--max-attempts", "1")
	db := s.store()
	w := s.work(s.script(`test -e mended`), "--kind", "k")
	becomes(t, db, id, pacht.Dead)
	s.ok(ann("jobs", "retry", id)...)
	becomes(t, db, id, pacht.Dead) // once more, with attempt 2 of 2
	if got := attempts(t, db, id, 2); got[1].Attempt != 2 {
		t.Errorf("%+v", got)
	}
	w.signal(syscall.SIGTERM)
	w.ends()
}

func TestPruneDeletesFinishedJobsOnlyAndInBatches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		var gone []string
		for range 7 {
			id := s.enqueue("k")
			s.ok(ann("jobs", "cancel", id)...)
			gone = append(gone, id)
		}
		kept := s.enqueue("k")
		prune := func(args ...string) string {
			return s.ok(append([]string{"jobs", "prune", "--status", "Cancelled,Dead"}, args...)...)
		}
		if out := prune("--older-than", "1h"); !strings.Contains(out, "Cancelled: 0 jobs") {
			t.Errorf("young jobs: %s", out)
		}
		if out := prune("--older-than", "0s", "--limit", "2", "--batch", "1"); !strings.Contains(out, "Cancelled: 2 jobs") {
			t.Errorf("limited: %s", out)
		}
		if out := prune("--older-than", "0s", "--batch", "2"); !strings.Contains(out, "Cancelled: 5 jobs") {
			t.Errorf("the rest: %s", out)
		}
		s.refused(exitRefused, nil, "jobs", "show", gone[0])
		s.ok("jobs", "show", kept)
	})
}

func TestQueueSettingsCountForJobsFromThenOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		before := s.enqueue("k", "--queue", "q")
		s.ok(ann("queues", "set", "q", "--ttl", "5m", "--max-attempts", "3")...)
		s.ok(ann("queues", "set", "q", "--max-attempts", "0", "--on-crash", "hold")...) // ttl stays, attempts go
		after := s.enqueue("k", "--queue", "q")
		db := s.store()
		if j := jobOf(t, db, before); j.TTL != pacht.DefaultTTL {
			t.Errorf("the old job got TTL %s", j.TTL)
		}
		if j := jobOf(t, db, after); j.TTL.String() != "5m0s" || j.MaxAttempts != pacht.DefaultMaxAttempts || j.CrashPolicy != pacht.CrashHold {
			t.Errorf("the new job: %+v", j)
		}
		out := s.ok("queues", "show", "q")
		for _, want := range []string{"2, 2 of them due", "ttl 5m", "on crash hold", "ann", "because"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
}

func TestStuckListsTheExpiredAndTheParked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		if out := s.ok("stuck"); out != "nothing is stuck\n" {
			t.Errorf("an empty database: %s", out)
		}
		db := s.store()
		expired := s.enqueue("slow", "--ttl", "100ms")
		s.claim(expired)
		parked := s.enqueue("charge")
		held := s.claim(parked)
		answers, err := db.Settle(t.Context(), []pacht.Settlement{{Ref: held.Ref(), Outcome: pacht.OutcomeUnknown, Error: "no answer\x1b[2J from the bank"}})
		if err != nil || answers[0].Err != nil {
			t.Fatal(err, answers)
		}
		var rows []stuckJob
		until(t, "the lease expires", func() bool {
			s.document(&rows, exitOK, "stuck")
			return len(rows) == 2
		})
		if r := rows[0]; r.State != "expired" || r.ID.String() != expired || r.Owner != "somebody" || r.Lag < 0 {
			t.Errorf("expired: %+v", r)
		}
		if r := rows[1]; r.State != "parked" || r.ID.String() != parked || r.Owner != "somebody" || !strings.HasPrefix(r.LastError, "no answer") {
			t.Errorf("parked: %+v", r)
		}
		out := s.ok("stuck")
		if !strings.Contains(out, "parked") || !strings.Contains(out, `no answer\u001b[2J from the bank`) {
			t.Errorf("%s", out)
		}
	})
}

// What is stored may come from anywhere; a terminal must not obey it.
func TestStoredControlCharactersNeverReachTheTerminalRaw(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		const evil = "x\x1b]0;owned\x07\u009b2J\u202e"
		db := s.store()
		id := s.enqueue("k", `{"s":"`+"\u009b2J\u202e\x7f"+`"}`, "--metadata", `{"m":"`+"\u009b"+`"}`, "--key", "k"+evil)
		n := jobOf(t, db, id).ID
		if _, _, err := db.ClaimID(t.Context(), "owner"+evil, n); err != nil {
			t.Fatal(err)
		}
		j := jobOf(t, db, id)
		if err := db.SetStep(t.Context(), j.Ref(), "step", []byte(`"`+"\u009b"+`"`)); err != nil {
			t.Fatal(err)
		}
		lists := [][]string{{"jobs", "list"}, {"jobs", "show", id}, {"stuck"}, {"queues", "list"}, {"queues", "show", "default"}, {"workers"}, {"doctor"}}
		check := func() {
			t.Helper()
			for _, args := range lists {
				for _, r := range []result{s.run(args...), s.run(append(args, "--json")...)} {
					for _, c := range r.out + r.err {
						if c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x202e) {
							t.Fatalf("pacht %q prints %U:\n%q", args, c, r.out+r.err)
						}
					}
				}
			}
		}
		check()
		if _, err := db.Settle(t.Context(), []pacht.Settlement{{Ref: j.Ref(), Outcome: pacht.OutcomeUnknown, Error: "err" + evil, Output: []byte(`"` + "\u009b" + `"`)}}); err != nil {
			t.Fatal(err)
		}
		s.ok("jobs", "retry", id, "--by", "ann"+evil, "--reason", "why"+evil)
		s.ok("jobs", "cancel", id, "--by", "ann"+evil, "--reason", "why\nnot"+evil)
		s.ok("queues", "set", "default", "--ttl", "1m", "--by", "ann"+evil, "--reason", "why"+evil)
		check()
		r := s.run("enqueue", "k", `1`, "--key", "k"+evil)
		if r.code != exitRefused || strings.ContainsAny(r.err, "\x1b\x07") {
			t.Errorf("a refusal prints %q", r.err)
		}
	})
}
