package pacht

import (
	"context"
	"strconv"
	"time"
)

// Retention says how long finished jobs are kept, counted from when they finished. The zero
// value keeps all of them for ever: a history of payments must not vanish because nobody
// thought of it. Where several processes have different ones, the shortest counts.
type Retention struct {
	Completed time.Duration // 0 = for ever, else 1s to 100 years; the same for the others
	Dead      time.Duration
	Cancelled time.Duration
}

const (
	minRetention = time.Second
	maxRetention = 100 * 365 * 24 * time.Hour
)

// Validate answers nil or an *InvalidError.
func (r Retention) Validate() error {
	for _, each := range []struct {
		field string
		value time.Duration
	}{
		{"retention of completed jobs", r.Completed},
		{"retention of dead jobs", r.Dead},
		{"retention of cancelled jobs", r.Cancelled},
	} {
		if each.value != 0 && (each.value < minRetention || each.value > maxRetention) {
			return &InvalidError{Field: each.field, Value: each.value.String(), Bound: "0 (for ever), or 1s to 100 years"}
		}
	}
	return nil
}

// Sweeper takes away what has outlived its use: the part of maintenance.
type Sweeper interface {
	// Sweep looks through the next page of one target, if a page is due, and deletes what is
	// old enough: finished jobs with all their attempts, steps, effects and reports, never one
	// with a lease or an open effect, and never a part of one; expired keys, never one whose job is unfinished; rows of
	// worker processes that ended or fell silent. Turn, deletions and stamp are one
	// transaction, so that any number of processes may sweep, one at a time makes a pass, and
	// a pass that fails leaves no trace and is not recorded.
	//
	// A look goes on from where the last one got to, page by page; so what became old behind
	// it is found by the next look from the start. That comes with the next period, or after
	// 50 times what the last one took, if that is later.
	Sweep(ctx context.Context, req SweepRequest) (Swept, error)
}

// Target is what a sweep takes away.
type Target string

const (
	SweepCompleted Target = "Completed" // jobs, by the time they finished
	SweepDead      Target = "Dead"      // likewise
	SweepCancelled Target = "Cancelled" // likewise
	SweepKeys      Target = "keys"      // idempotency keys, by the end of their life
	SweepWorkers   Target = "workers"   // processes, by the time they stopped, or their last beat
)

// Targets lists all of them.
var Targets = []Target{SweepCompleted, SweepDead, SweepCancelled, SweepKeys, SweepWorkers}

// SweepRequest asks for one page.
type SweepRequest struct {
	By        string // who sweeps; kept with the stamp
	Target    Target
	OlderThan time.Duration // 0 or more
	Limit     int           // how many rows to look at, and to delete at most: 1 to MaxBatch
	Period    time.Duration // from the end of a look to the next one: 10ms to 24h
	Force     bool          // look whether a page is due or not
}

// Validate checks a request for a page.
func (r SweepRequest) Validate() error {
	if err := ValidOwner(r.By); err != nil {
		return err
	}
	known := false
	for _, t := range Targets {
		known = known || t == r.Target
	}
	switch {
	case !known:
		return &InvalidError{Field: "target", Value: clip(string(r.Target)), Bound: "Completed, Dead, Cancelled, keys or workers: unfinished jobs are never swept"}
	case r.OlderThan < 0 || r.OlderThan > maxRetention:
		return &InvalidError{Field: "older than", Value: r.OlderThan.String(), Bound: "0 to 100 years"}
	case r.Limit < 1 || r.Limit > MaxBatch:
		return &InvalidError{Field: "limit", Value: strconv.Itoa(r.Limit), Bound: "1 to 10000"}
	case r.Period < 10*time.Millisecond || r.Period > 24*time.Hour:
		return &InvalidError{Field: "sweep period", Value: r.Period.String(), Bound: "10ms to 24h"}
	}
	return nil
}

// Swept is what one page did.
type Swept struct {
	Turn    bool // false: none was due, or somebody else is at it; nothing was looked at
	Removed int
	// Refused is how many could not be deleted, because a constraint or trigger of yours
	// forbids it. They are passed over and stop no others (R12).
	Refused int
	// More says that the look is not at its end: the next page is due at once.
	More bool
}
