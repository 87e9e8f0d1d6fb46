package pacht_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// The table as docs/lease.md draws it, written out once more: what may follow each status.
var mayFollow = map[pacht.Status][]pacht.Status{
	"Pending":    {"Processing", "Completed", "Dead", "Cancelled"},
	"Processing": {"Processing", "Pending", "Stuck", "Completed", "Dead", "Cancelled"},
	"Stuck":      {"Pending", "Completed", "Dead", "Cancelled"},
	"Completed":  {},
	"Dead":       {"Pending"},
	"Cancelled":  {"Pending"},
}

func TestEveryPairOfStatusesIsAllowedOrNotAsTheTableSays(t *testing.T) {
	if len(pacht.Statuses) != len(mayFollow) {
		t.Fatalf("%d statuses, want %d", len(pacht.Statuses), len(mayFollow))
	}
	for _, from := range pacht.Statuses {
		for _, to := range pacht.Statuses {
			if got, want := from.CanBecome(to), slices.Contains(mayFollow[from], to); got != want {
				t.Errorf("%s to %s: allowed %v, want %v", from, to, got, want)
			}
		}
	}
	for _, strange := range []pacht.Status{"", "pending", "Running"} {
		if strange.CanBecome(pacht.Pending) || pacht.Pending.CanBecome(strange) {
			t.Errorf("%q takes part", strange)
		}
	}
}

func TestOnlyCompletedDeadAndCancelledAreFinished(t *testing.T) {
	for _, s := range pacht.Statuses {
		if got, want := s.Finished(), s == "Completed" || s == "Dead" || s == "Cancelled"; got != want {
			t.Errorf("%s: finished %v", s, got)
		}
	}
}

var outcomes = []pacht.Outcome{"Completed", "Failed", "Expired", "Released", "Snoozed", "Cancelled", "Unknown"}

// R9: whatever the row and the outcome, what follows is allowed, never Processing, and a row
// that the tables' constraints accept.
func TestNextNeverLeavesTheTransitionTable(t *testing.T) {
	every(func(f pacht.Facts, s pacht.Settlement) {
		n := pacht.Next(f, s)
		name := fmt.Sprintf("%+v %+v: %+v", f, s, n)
		if !pacht.Processing.CanBecome(n.Status) || n.Status == pacht.Processing {
			t.Errorf("not allowed: %s", name)
		}
		if n.Status == pacht.Pending && n.Attempt >= f.MaxAttempts {
			t.Errorf("R9, a job at its cap would run again: %s", name)
		}
		if n.Status == pacht.Pending && f.CancelRequested {
			t.Errorf("R9, a cancelled job would run again: %s", name)
		}
		if n.Attempt != f.Attempt && n.Attempt != f.Attempt-1 {
			t.Errorf("R5, attempt: %s", name)
		}
		if n.Status != pacht.Pending && n.Delay != 0 {
			t.Errorf("a delay of what does not wait: %s", name)
		}
		if n.Status == pacht.Pending && s.Outcome == pacht.OutcomeExpired && (n.Delay < f.TTL/10 || n.Delay > f.TTL) {
			t.Errorf("R9, backoff of a crash: %s", name)
		}
	})
}

func every(fn func(pacht.Facts, pacht.Settlement)) {
	bools := []bool{false, true}
	for attempt := 1; attempt <= 4; attempt++ {
		for crashes := range 4 {
			for _, policy := range []pacht.CrashPolicy{pacht.CrashRetry, pacht.CrashHold} {
				for _, cancel := range bools {
					for _, outcome := range outcomes {
						for _, permanent := range bools {
							for _, back := range bools {
								fn(pacht.Facts{Attempt: attempt, MaxAttempts: 4, Crashes: crashes, MaxCrashes: 4,
									TTL: time.Minute, CrashPolicy: policy, CancelRequested: cancel},
									pacht.Settlement{Outcome: outcome, Permanent: permanent, GiveBack: back, Delay: time.Hour})
							}
						}
					}
				}
			}
		}
	}
}

// The rules R5, R9 and R10 in words, one line each.
func TestNextSaysWhatTheRulesSay(t *testing.T) {
	base := pacht.Facts{Attempt: 2, MaxAttempts: 5, Crashes: 1, MaxCrashes: 3, TTL: time.Minute, CrashPolicy: pacht.CrashRetry}
	with := func(change func(*pacht.Facts)) pacht.Facts {
		f := base
		change(&f)
		return f
	}
	last := with(func(f *pacht.Facts) { f.Attempt = 5 })
	hold := with(func(f *pacht.Facts) { f.CrashPolicy = pacht.CrashHold })
	poison := with(func(f *pacht.Facts) { f.Crashes = 2 })
	unwanted := with(func(f *pacht.Facts) { f.CancelRequested = true })
	failed := pacht.Settlement{Outcome: pacht.OutcomeFailed, Delay: time.Second}
	of := func(o pacht.Outcome) pacht.Settlement { return pacht.Settlement{Outcome: o, Delay: time.Second} }
	for _, c := range []struct {
		name  string
		facts pacht.Facts
		end   pacht.Settlement
		want  pacht.Following
	}{
		{"success", base, of("Completed"), pacht.Following{Status: "Completed", Attempt: 2}},
		{"success though a cancel is requested", unwanted, of("Completed"), pacht.Following{Status: "Completed", Attempt: 2}},
		{"failure waits, and ends the row of crashes", base, failed, pacht.Following{Status: "Pending", Attempt: 2, Delay: time.Second}},
		{"failure at the cap", last, failed, pacht.Following{Status: "Dead", Attempt: 5}},
		{"failure for good", base, pacht.Settlement{Outcome: "Failed", Permanent: true}, pacht.Following{Status: "Dead", Attempt: 2}},
		{"failure for good has used its try", base, pacht.Settlement{Outcome: "Failed", Permanent: true, GiveBack: true}, pacht.Following{Status: "Dead", Attempt: 2}},
		{"stopped from outside at the cap", last, pacht.Settlement{Outcome: "Failed", GiveBack: true}, pacht.Following{Status: "Pending", Attempt: 4}},
		{"failure with a cancel requested", unwanted, failed, pacht.Following{Status: "Cancelled", Attempt: 2}},
		{"release keeps the row of crashes", base, of("Released"), pacht.Following{Status: "Pending", Attempt: 1, Crashes: 1, Delay: time.Second}},
		{"release at the cap", last, of("Released"), pacht.Following{Status: "Pending", Attempt: 4, Crashes: 1, Delay: time.Second}},
		{"snooze", base, of("Snoozed"), pacht.Following{Status: "Pending", Attempt: 1, Delay: time.Second}},
		{"snooze with a cancel requested", unwanted, of("Snoozed"), pacht.Following{Status: "Cancelled", Attempt: 1}},
		{"cancelled by the handler", base, of("Cancelled"), pacht.Following{Status: "Cancelled", Attempt: 2}},
		{"unknown is never retried", base, of("Unknown"), pacht.Following{Status: "Stuck", Attempt: 2}},
		{"unknown though a cancel is requested", unwanted, of("Unknown"), pacht.Following{Status: "Stuck", Attempt: 2}},
		{"expired", base, of("Expired"), pacht.Following{Status: "Pending", Attempt: 2, Crashes: 2, Delay: 12 * time.Second}},
		{"expired under hold", hold, of("Expired"), pacht.Following{Status: "Stuck", Attempt: 2, Crashes: 2}},
		{"expired at max_attempts", last, of("Expired"), pacht.Following{Status: "Stuck", Attempt: 5, Crashes: 2}},
		{"expired at the crash cap", poison, of("Expired"), pacht.Following{Status: "Stuck", Attempt: 2, Crashes: 3}},
		{"expired with a cancel requested", unwanted, of("Expired"), pacht.Following{Status: "Cancelled", Attempt: 2, Crashes: 2}},
	} {
		if got := pacht.Next(c.facts, c.end); got != c.want {
			t.Errorf("%s:\n got  %+v\n want %+v", c.name, got, c.want)
		}
	}
}

func TestCrashDelayGrowsFromATenthOfTheTTLToAllOfIt(t *testing.T) {
	for crashes, want := range map[int]time.Duration{
		0: 6 * time.Second, 1: 6 * time.Second, 2: 12 * time.Second, 3: 24 * time.Second, 4: 48 * time.Second, 5: time.Minute, 1000: time.Minute,
	} {
		if got := pacht.CrashDelay(time.Minute, crashes); got != want {
			t.Errorf("%d crashes: %s, want %s", crashes, got, want)
		}
	}
}
