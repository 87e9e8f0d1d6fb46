package crew

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// Runs is what handlers of this process did, whatever worker they belong to.
type Runs struct {
	mu  sync.Mutex
	all map[pacht.ID][]Run
}

// Run is one run of a handler.
type Run struct {
	Token      pacht.Token
	Begin, End time.Time
	Left       time.Duration // of the lease when it ended, by the holder's own count
	Cause      error         // why it was cancelled, nil if it was not
}

// Handle is a handler that takes as long as its job says, and ends at once when it is cancelled.
func (r *Runs) Handle(ctx context.Context, job *pacht.Job[Task]) error {
	one := Run{Token: job.Token, Begin: time.Now()}
	select {
	case <-time.After(time.Duration(job.Args.Ms) * time.Millisecond):
	case <-ctx.Done():
		one.Cause = context.Cause(ctx)
	}
	one.End, one.Left = time.Now(), job.Remaining()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[pacht.ID][]Run{}
	}
	r.all[job.ID] = append(r.all[job.ID], one)
	return one.Cause
}

// Of is the ended runs of one job so far.
func (r *Runs) Of(id pacht.ID) []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[id])
}

// Len is how many runs have ended so far.
func (r *Runs) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, list := range r.all {
		n += len(list)
	}
	return n
}

// Alone fails the test if two runs of one job overlapped (R1, R8).
func (r *Runs) Alone(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, list := range r.all {
		slices.SortFunc(list, func(a, b Run) int { return a.Begin.Compare(b.Begin) })
		for i := 1; i < len(list); i++ {
			if list[i].Begin.Before(list[i-1].End) || list[i].Token <= list[i-1].Token {
				t.Errorf("job %d: the run under token %d began %s before the one under token %d had ended",
					id, list[i].Token, list[i-1].End.Sub(list[i].Begin), list[i-1].Token)
			}
		}
	}
}

// Once fails the test for each of these jobs that did not run exactly once.
func (r *Runs) Once(t testing.TB, ids []pacht.ID) {
	t.Helper()
	for _, id := range ids {
		if n := len(r.Of(id)); n != 1 {
			t.Errorf("job %d ran %d times", id, n)
		}
	}
}
