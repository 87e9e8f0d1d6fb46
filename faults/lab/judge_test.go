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

// second is a moment.
func second(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Second))) }

func event(at float64, what string, token pacht.Token, owner string) Event {
	return Event{At: second(at), What: what, Ref: pacht.Ref{Job: 1, Token: token}, Owner: owner}
}

func told() []Event {
	return []Event{event(0.1, Begin, 1, "a"), event(1, Effect, 1, "a"), event(3.1, Begin, 2, "b"), event(3.5, Effect, 2, "b"), event(3.9, End, 2, "b")}
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
		{"two owners at once, after a release", func(j *jobRows, e []Event) []Event {
			j.ledger[0].Outcome, j.ledger[1].Attempt = pacht.OutcomeReleased, 1
			j.ledger[1].ClaimedAt = start
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
		{"begun twice", func(_ *jobRows, e []Event) []Event { return append(e, event(3.2, Begin, 2, "b")) }, "was begun twice"},
		{"begun by another than the holder", func(_ *jobRows, e []Event) []Event {
			e[2].Owner, e[3].Owner = "c", "c"
			return e
		}, "was begun by c, and is held by b"},
		{"begun without a lease", func(_ *jobRows, e []Event) []Event { return append(e, event(3.2, Begin, 3, "b")) }, "nobody ever held it"},
		{"a stale effect", func(_ *jobRows, e []Event) []Event { return append(e, event(3.6, Effect, 1, "a")) }, "had an effect after token 2"},
		{"begun before its claim", func(_ *jobRows, e []Event) []Event {
			e[0].At = second(-2)
			return e
		}, "before its claim"},
		{"begun after its end", func(_ *jobRows, e []Event) []Event {
			e[2].At = second(5.5)
			return e
		}, "job 1, token 2: begin at 2026-01-01 00:00:05.5 +0000 UTC, after its end"},
		{"an effect after its end, by a holder that could know it", func(j *jobRows, e []Event) []Event {
			for i := range j.ledger[1:] { // the next one comes late
				j.ledger[1+i].ClaimedAt, j.ledger[1+i].EndedAt = second(9), second(10)
			}
			e[1].At, e[2].At, e[3].At, e[4].At = second(8), second(9.1), second(9.2), second(9.3)
			return e
		}, "job 1, token 1: effect at 2026-01-01 00:00:08 +0000 UTC, after its end"},
		{"two handlers side by side", func(_ *jobRows, e []Event) []Event { return append(e, event(4.5, End, 1, "a")) }, "job 1, token 1 was ended by a at"},
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
