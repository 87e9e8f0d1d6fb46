package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Lane is what a pass looks through.
type Lane string

const (
	LanePending Lane = "pending" // parked jobs, effects without an answer, pending records, breaks that are due
	LaneSettled Lane = "settled" // records that may be reversed, breaks that are with a person
	LaneList    Lane = "list"    // what the provider has
)

// Lanes lists all of them.
var Lanes = []Lane{LanePending, LaneSettled, LaneList}

// pageSize is how many rows are listed at once.
const pageSize = 200

// pass is one walk through a lane. Its cursors begin at the start and end with it: so a row that
// was committed late, behind where an earlier pass had got to, is found by the next.
type pass struct {
	*Reconciler
	lane  Lane
	dry   bool
	begun time.Time // by the database's clock
	since clock.Instant

	// Of the goroutine that lists alone.
	seen map[string]bool   // references
	jobs map[pacht.ID]bool // parked ones

	mu     sync.Mutex
	report Report
}

// Pass looks through one lane, once, and says what it did. A dry run asks both sides and changes
// nothing at all. One row that cannot be looked at stops no other (R12): it stands in the
// report. An error says that something could not be listed to its end, or that ctx has ended;
// what was done until then stands, and is in the report.
func (r *Reconciler) Pass(ctx context.Context, lane Lane, dryRun bool) (Report, error) {
	if !slices.Contains(Lanes, lane) || lane == LaneList && r.lister == nil {
		return Report{}, &pacht.InvalidError{Field: "lane", Value: fmt.Sprintf("%.40q", lane), Bound: "pending, settled, or list if the provider is a Lister"}
	}
	now, err := r.cfg.Store.Now(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("begin a pass over lane %s: %w", lane, err)
	}
	p := &pass{
		Reconciler: r, lane: lane, dry: dryRun, begun: now, since: clock.Now(),
		seen: map[string]bool{}, jobs: map[pacht.ID]bool{},
		report: Report{Lane: lane, DryRun: dryRun, BeganAt: now},
	}
	sources := map[Lane][]func(context.Context) error{
		LanePending: {p.parked, p.effects, p.pending, p.due},
		LaneSettled: {p.reversible, p.withPersons},
		LaneList:    {p.listed},
	}
	var failed []error
	for _, source := range sources[lane] {
		if ctx.Err() == nil {
			failed = append(failed, source(ctx))
		}
	}
	if ctx.Err() != nil {
		failed = append(failed, context.Cause(ctx))
	}
	p.report.Took = p.since.Elapsed()
	err = errors.Join(failed...)
	p.report.Complete = err == nil
	if err != nil {
		err = fmt.Errorf("pass over lane %s: %w", lane, err)
	}
	return p.report, err
}

// now is the database's clock, near enough to compare ages of breaks with.
func (p *pass) now() time.Time { return p.begun.Add(p.since.Elapsed()) }

// all looks at a page of subjects, some at a time, and waits for all of them.
func (p *pass) all(ctx context.Context, page []subject) {
	var running sync.WaitGroup
	turns := make(chan struct{}, p.cfg.Parallel)
	for _, s := range page {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-turns }()
			if err := p.look(ctx, s); err != nil && ctx.Err() == nil {
				p.problem(s.reference, err)
			}
		})
	}
	running.Wait()
}

// count adds to the report.
func (p *pass) count(add func(*Report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.report)
}

// problem keeps what went wrong with one reference.
func (p *pass) problem(reference string, err error) {
	p.count(func(r *Report) {
		r.Failed++
		if len(r.Problems) < mostProblems {
			r.Problems = append(r.Problems, Problem{Reference: pacht.SafeText(reference, pacht.MaxKeyBytes), Error: pacht.SafeText(fmt.Sprint(err), pacht.MaxReasonBytes)})
		}
	})
}

// guarded makes an error of a panic in somebody else's code, and bounds it in time.
func guarded[T any](ctx context.Context, limit time.Duration, what string, fn func(context.Context) (T, error)) (v T, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panicked: %v", what, r)
		}
	}()
	return fn(ctx)
}
