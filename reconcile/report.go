package reconcile

import (
	"fmt"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

const (
	mostProblems = 20
	mostFindings = 1000
)

// Report is what one pass did, or would have done if it was a dry run.
type Report struct {
	Lane    Lane          `json:"lane"`
	DryRun  bool          `json:"dry_run"`
	BeganAt time.Time     `json:"began_at"`
	Took    time.Duration `json:"took_ns"`
	// Complete says that everything was listed to its end. What an incomplete pass did not
	// come to is looked at by the next one.
	Complete bool `json:"complete"`

	Looked   int `json:"looked"`   // references that were compared
	LookUps  int `json:"look_ups"` // how often the provider was asked
	Skipped  int `json:"skipped"`  // references with a break that is not due, or with a person
	Agreed   int `json:"agreed"`   // references on which both sides agree, now or already
	Healed   int `json:"healed"`   // transitions that were committed
	Waiting  int `json:"waiting"`  // differences that will be asked again
	Held     int `json:"held"`     // differences that are with a person
	Accepted int `json:"accepted"` // differences that a person has closed as they are
	Closed   int `json:"closed"`   // breaks that had gone by themselves
	Resolved int `json:"resolved"` // parked jobs that were closed
	Retried  int `json:"retried"`  // parked jobs that were put back, to call again under the same key
	Answered int `json:"answered"` // effects that got an answer
	Lost     int `json:"lost"`     // decisions that somebody else made first
	Failed   int `json:"failed"`   // references that could not be looked at, see Problems

	// Nobodys are parked jobs that neither side knows, the first 20; they are left alone.
	Nobodys     []pacht.ID `json:"nobodys,omitempty"`
	NobodysMany int        `json:"nobodys_many"`
	Problems    []Problem  `json:"problems,omitempty"` // the first 20
	// Findings lists the differences, the first 1,000.
	Findings []Noted `json:"findings,omitempty"`
}

// Problem is a reference that could not be looked at.
type Problem struct {
	Reference string `json:"reference"`
	Error     string `json:"error"`
}

// Noted is a difference and what was done about it.
type Noted struct {
	Reference string `json:"reference"`
	Class     Class  `json:"class"`
	// Done is healed, waiting, held, accepted or lost; of a dry run what would have been done.
	Done   string `json:"done"`
	Reason string `json:"reason"`
	Ours   Record `json:"ours"`
	Theirs Record `json:"theirs"`
}

// String is the report for people, on several lines.
func (r Report) String() string {
	var b strings.Builder
	title := "pass over lane " + string(r.Lane)
	if r.DryRun {
		title = "dry run over lane " + string(r.Lane) + ": nothing was changed"
	}
	if !r.Complete {
		title += " (not to its end)"
	}
	fmt.Fprintf(&b, "%s, %s\n", title, r.Took.Round(time.Millisecond))
	for _, row := range []struct {
		name string
		n    int
	}{
		{"looked at", r.Looked}, {"look-ups", r.LookUps}, {"not due", r.Skipped}, {"agreed", r.Agreed}, {"healed", r.Healed},
		{"waiting", r.Waiting}, {"with a person", r.Held}, {"accepted", r.Accepted}, {"breaks closed", r.Closed}, {"jobs resolved", r.Resolved},
		{"jobs put back", r.Retried}, {"effects answered", r.Answered}, {"lost to others", r.Lost}, {"failed", r.Failed}, {"nobody's jobs", r.NobodysMany},
	} {
		if row.n > 0 {
			fmt.Fprintf(&b, "  %-17s %d\n", row.name, row.n)
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %-9s %s %q: %q\n", f.Done, f.Class, f.Reference, f.Reason)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  failed    %q: %q\n", p.Reference, p.Error)
	}
	return b.String()
}

// short is what is kept as the output of a job.
func (r Report) short() Report {
	r.Findings = nil // they stand in the table of decisions
	return r
}
