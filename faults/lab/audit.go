package lab

import (
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// AuditOptions say what a run should have come to.
type AuditOptions struct {
	// Jobs is how many were enqueued for certain; none may be missing. 0 = not known.
	Jobs int
	// End is what a job should be in the end; nil = all Completed.
	End func(pacht.ID) pacht.Status
	// Fleets are those whose processes held the leases. What was done to these explains why an
	// attempt was not begun.
	Fleets []*Fleet
	// Outages are the times at which the database, or the network to it, was disturbed: a claim of
	// such a time may have gone unanswered, and its leases have run out before anybody could ask.
	Outages []Outage
}

// Outage is a time at which the database could not be reached, or not by all.
type Outage struct{ From, Until time.Time }

// Audit reads database and recorder when all is over, and fails the test for whatever no rule
// allows: see judge.
func Audit(t testing.TB, url string, rec *Recorder, opts AuditOptions) Account {
	t.Helper()
	var events []Event
	if rec != nil {
		events = rec.Events()
	}
	a := judge(readTables(t, url), events, opts)
	violations, err := Open(t, url).Check(t.Context())
	if err != nil {
		t.Fatalf("check the rules: %v", err)
	}
	for _, v := range violations {
		a.fault("the store's own check: %s, job %d: %s", v.Rule, v.Job, v.Detail)
	}
	const most = 20
	for i, f := range a.Faults {
		if i == most {
			t.Errorf("audit: and %d more", len(a.Faults)-most)
			break
		}
		t.Errorf("audit: %s", f)
	}
	return a
}
