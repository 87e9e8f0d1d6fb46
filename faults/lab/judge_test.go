package lab

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// lease is a row of the ledger, from one second to another.
func lease(token pacht.Token, attempt int, owner string, from, to int, outcome pacht.Outcome, next pacht.Status) pacht.Attempt {
	return pacht.Attempt{
		Job: 1, Token: token, Attempt: attempt, Owner: owner, Outcome: outcome, NextStatus: next,
		ClaimedAt: start.Add(time.Duration(from) * time.Second), EndedAt: start.Add(time.Duration(to) * time.Second),
	}
}

// ran is a job that one holder left to expire and another completed, with a row in the business
// table.
func ran() *tables {
	return &tables{jobs: map[pacht.ID]*jobRows{1: {id: 1, booked: []pacht.Token{2}, ledger: []pacht.Attempt{
		lease(1, 1, "a", 0, 2, pacht.OutcomeExpired, pacht.Pending),
		lease(2, 2, "b", 3, 4, pacht.OutcomeCompleted, pacht.Completed),
	}}}}
}

func event(what string, token pacht.Token, owner string) Event {
	return Event{What: what, Ref: pacht.Ref{Job: 1, Token: token}, Owner: owner}
}

func told() []Event {
	return []Event{event(Begin, 1, "a"), event(Effect, 1, "a"), event(Begin, 2, "b"), event(Effect, 2, "b"), event(End, 2, "b")}
}

// An audit that sees nothing would pass for ever: each fault that it is there for is planted once.
func TestAuditSeesEachFault(t *testing.T) {
	if a := judge(ran(), told(), AuditOptions{Jobs: 1}); len(a.Faults) != 0 || a.Attempts != 2 || a.Begun != 2 || a.Effects != 2 || a.Booked != 1 {
		t.Fatalf("nothing is wrong, and it found %+v", a)
	}
	for _, c := range []struct {
		what  string
		plant func(j *jobRows, events []Event) []Event
		want  string
	}{
		{"completed twice", func(j *jobRows, e []Event) []Event {
			j.ledger[0].Outcome, j.ledger[0].NextStatus = pacht.OutcomeCompleted, pacht.Completed
			return e
		}, "was completed 2 times"},
		{"never completed", func(j *jobRows, e []Event) []Event {
			j.ledger[1].Outcome, j.ledger[1].NextStatus = pacht.OutcomeFailed, pacht.Dead
			return e
		}, `is "Dead" in the end`},
		{"two owners at once", func(j *jobRows, e []Event) []Event {
			j.ledger[1].ClaimedAt = start.Add(time.Second)
			return e
		}, "token 2 was claimed at"},
		{"a lease without a row", func(j *jobRows, e []Event) []Event {
			j.ledger = j.ledger[1:]
			return e
		}, "token 2 follows 0"},
		{"an attempt not counted", func(j *jobRows, e []Event) []Event {
			j.ledger[1].Attempt = 1
			return e
		}, "it counts as attempt 1"},
		{"an attempt that nobody began", func(_ *jobRows, e []Event) []Event { return e[2:] }, "it was never begun, and nothing explains it"},
		{"completed by nobody's work", func(_ *jobRows, e []Event) []Event { return e[:2] }, "it was never begun"},
		{"begun twice", func(_ *jobRows, e []Event) []Event { return append(e, event(Begin, 2, "b")) }, "was begun twice"},
		{"begun by another than the holder", func(_ *jobRows, e []Event) []Event {
			e[2].Owner, e[3].Owner = "c", "c"
			return e
		}, "was begun by c, and is held by b"},
		{"begun without a lease", func(_ *jobRows, e []Event) []Event { return append(e, event(Begin, 3, "b")) }, "nobody ever held it"},
		{"a stale effect", func(_ *jobRows, e []Event) []Event { return append(e, event(Effect, 1, "a")) }, "had an effect after token 2"},
		{"a fence that refuses the holder", func(_ *jobRows, e []Event) []Event {
			e[3].Stale = true
			return e
		}, "there was no higher token"},
		{"booked twice", func(j *jobRows, e []Event) []Event {
			j.booked = append(j.booked, 2)
			return e
		}, "was booked 2 times"},
		{"booked by a loser", func(j *jobRows, e []Event) []Event {
			j.booked = []pacht.Token{1}
			return e
		}, "booked under token 1, which did not complete it"},
		{"held and forgotten", func(j *jobRows, e []Event) []Event {
			j.ledger = j.ledger[:1]
			j.lease = &leaseRow{status: pacht.Processing, attempt: 2, token: 2, owner: "b", claimedAt: start.Add(3 * time.Second)}
			return e
		}, `is "Processing" in the end`},
		{"a lease with another count", func(j *jobRows, e []Event) []Event {
			j.ledger = j.ledger[:1]
			j.lease = &leaseRow{status: pacht.Processing, attempt: 1, token: 2, owner: "b", claimedAt: start.Add(3 * time.Second)}
			return e
		}, "its lease counts 1 attempts"},
	} {
		all := ran()
		events := c.plant(all.jobs[1], slices.Clone(told()))
		if found := strings.Join(judge(all, events, AuditOptions{Jobs: 1}).Faults, "\n"); !strings.Contains(found, c.want) {
			t.Errorf("%s: want %q, found %q", c.what, c.want, found)
		}
	}
	if a := judge(ran(), told(), AuditOptions{Jobs: 2}); len(a.Faults) == 0 {
		t.Error("a job that is not there was not missed")
	}
}

// What was done to a process explains why it did not begin what it had claimed, and nothing else
// than that it expired or was released.
func TestOnlyWhatWasDoneToAProcessExplainsWhatItDidNotBegin(t *testing.T) {
	killed := &Fleet{lives: []*Life{{Owner: "a", fates: []string{"killed"}}}}
	a := judge(ran(), told()[2:], AuditOptions{Fleets: []*Fleet{killed}})
	if len(a.Faults) != 0 || a.Cut["killed"] != 1 || a.Begun != 1 || a.Attempts != 2 {
		t.Errorf("%+v", a)
	}
	released := ran()
	released.jobs[1].ledger[0].Outcome, released.jobs[1].ledger[1].Attempt = pacht.OutcomeReleased, 1
	if a := judge(released, told()[2:], AuditOptions{}); len(a.Faults) != 0 || a.Cut["released"] != 1 || a.GivenBack != 1 {
		t.Errorf("%+v", a)
	}
	if a := judge(ran(), told()[2:], AuditOptions{Unanswered: true}); len(a.Faults) != 0 || a.Cut["unanswered claim"] != 1 {
		t.Errorf("%+v", a)
	}
	byHand := ran()
	byHand.jobs[1].ledger[1] = lease(2, 1, "a person", 5, 5, pacht.OutcomeResolved, pacht.Completed)
	byHand.jobs[1].booked = nil
	if a := judge(byHand, told()[:2], AuditOptions{}); len(a.Faults) != 0 || a.Hand != 1 || a.Attempts != 1 {
		t.Errorf("%+v", a)
	}
}
