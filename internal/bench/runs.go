package bench

import (
	"context"
	"fmt"
	"sync/atomic"
)

// runs counts how often the handler of each job ran.
type runs struct {
	of      []atomic.Uint32
	total   atomic.Int64
	strange atomic.Int64 // jobs of no number that we gave
}

func newRuns(n int) *runs { return &runs{of: make([]atomic.Uint32, n)} }

func (r *runs) ran(n int) {
	if n < 0 || n >= len(r.of) {
		r.strange.Add(1)
		return
	}
	r.of[n].Add(1)
	r.total.Add(1)
}

// compact is a byte for each job, 255 for more; what a process hands to its parent.
func (r *runs) compact() []byte {
	b := make([]byte, len(r.of))
	for i := range r.of {
		b[i] = byte(min(r.of[i].Load(), 255))
	}
	return b
}

// add counts what another process has run.
func (r *runs) add(compact []byte, strange int64) {
	for n, times := range compact {
		if n < len(r.of) {
			r.of[n].Add(uint32(times))
			r.total.Add(int64(times))
		}
	}
	r.strange.Add(strange)
}

// books is what the tables say of the jobs of a run.
type books struct {
	jobs int64 // how many there are
	once int64 // how many have exactly one Completed attempt
	left int64 // how many still have a lease
}

func (p *Place) books(ctx context.Context, base int64) (b books, err error) {
	if err := p.tables.row(ctx, p.sql.Ledger, []any{base}, &b.jobs, &b.once, &b.left); err != nil {
		return b, fmt.Errorf("check the ledger: %w", err)
	}
	return b, nil
}

// verdict says why the first n jobs did not all run exactly once; "" if they did. pruned says
// that the tables may hold fewer of them, because retention was at work.
func verdict(r *runs, n int, b books, pruned bool) string {
	never, again := 0, 0
	for i := range n {
		switch times := r.of[i].Load(); {
		case times == 0:
			never++
		case times > 1:
			again++
		}
	}
	switch {
	case never > 0 || again > 0:
		return fmt.Sprintf("of %d jobs, %d never ran and %d ran more than once", n, never, again)
	case r.total.Load() != int64(n) || r.strange.Load() > 0:
		return fmt.Sprintf("%d handlers ran for %d jobs, and %d for jobs that are not of this run", r.total.Load(), n, r.strange.Load())
	case b.left > 0:
		return fmt.Sprintf("%d jobs still have a lease", b.left)
	case b.jobs != int64(n) && (!pruned || b.jobs > int64(n)):
		return fmt.Sprintf("the tables hold %d jobs of %d", b.jobs, n)
	case b.once != b.jobs:
		return fmt.Sprintf("%d of %d jobs have not exactly one Completed attempt", b.jobs-b.once, b.jobs)
	}
	return ""
}
