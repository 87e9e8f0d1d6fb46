package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/sweep"
	"github.com/pacht-queue/pacht/worker"
)

// Steady enqueues at a fixed rate, lets a worker do the jobs as they come, and looks at
// intervals whether anything grows: latency, time of a claim, size of the tables.
type Steady struct {
	Rate        int // jobs a second
	For         time.Duration
	Interval    time.Duration
	Retention   time.Duration // delete what finished so long ago, as workers do; 0 = never
	Concurrency int
	ArgsBytes   int
	OnInterval  func(SteadyInterval) // called after each; nil = not
}

// Validate refuses settings out of bounds.
func (s Steady) Validate() error {
	switch {
	case s.For <= 0 || s.For > 7*24*time.Hour:
		return &pacht.InvalidError{Field: "for", Value: s.For.String(), Bound: "more than 0, up to 168h"}
	case s.Interval <= 0 || s.Interval > s.For:
		return &pacht.InvalidError{Field: "interval", Value: s.Interval.String(), Bound: "more than 0, up to --for, which is " + s.For.String()}
	}
	return errors.Join(
		pacht.Retention{Completed: s.Retention}.Validate(),
		within("rate", s.Rate, 1, 1_000_000),
		within("concurrency", s.Concurrency, 1, 100_000),
		within("args-bytes", s.ArgsBytes, 1, mostArgs),
		within("jobs (rate times for)", int(float64(s.Rate)*s.For.Seconds()), 1, mostJobs),
	)
}

// steadyRun is one under way.
type steadyRun struct {
	Steady
	p     *Place
	ran   *runs
	epoch time.Time
	sent  []time.Duration // when the enqueue of each job began; written before it is stored

	mu       sync.Mutex
	interval intervalCounts
	enqueued int
	dropped  int // events of the worker that did not arrive
}

// Run measures.
func (s Steady) Run(ctx context.Context, p *Place) (res SteadyResult, err error) {
	if err := s.Validate(); err != nil {
		return res, err
	}
	base, err := p.newest(ctx)
	if err != nil {
		return res, err
	}
	most := int(float64(s.Rate)*s.For.Seconds()) + s.Rate
	r := &steadyRun{Steady: s, p: p, ran: newRuns(most), sent: make([]time.Duration, most), epoch: clock.Now().Time()}
	w, err := newWorker(p, s.Concurrency, func(_ context.Context, job *pacht.Job[noop]) error {
		r.ran.ran(job.Args.N)
		return nil
	}, func(cfg *worker.Config) { cfg.OnEvent, cfg.NoSweep = r.hear, true })
	if err != nil {
		return res, err
	}
	done, cancel := runWorker(ctx, w)
	c := &local{w: w, runs: r.ran, done: done, cancel: cancel}
	ended := false
	defer func() {
		if !ended {
			_, stop := c.end()
			err = errors.Join(err, stop)
		}
	}()
	if res.Intervals, err = r.watch(ctx, c); err != nil {
		return res, err
	}
	_, all, err := await(ctx, c, int64(r.enqueued))
	if err != nil {
		return res, err
	}
	ended = true
	if _, err := c.end(); err != nil {
		return res, fmt.Errorf("stop the worker: %w", err)
	}
	b, err := p.books(ctx, base)
	if err != nil {
		return res, err
	}
	res.Jobs, res.why, res.dropped = r.enqueued, verdict(r.ran, r.enqueued, b, s.Retention > 0), r.dropped
	if !all && res.why == "" {
		res.why = fmt.Sprintf("nothing happened for %s", stalled)
	}
	res.ExactlyOnce = res.why == ""
	res.flatness()
	more := fmt.Sprintf("%d jobs/s for %s, args %d bytes, concurrency %d, 1 process", s.Rate, s.For, s.ArgsBytes, s.Concurrency)
	if s.Retention > 0 {
		more += ", retention " + s.Retention.String()
	}
	res.facts, err = p.facts(ctx, more)
	return res, err
}

// watch runs producer, probe and retention until the time is over, and closes the intervals.
func (r *steadyRun) watch(ctx context.Context, c *local) ([]SteadyInterval, error) {
	var list []SteadyInterval
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(limited)
	g.Go(func() error { return r.produce(ctx) })
	g.Go(func() error { return r.every(ctx, time.Second, r.probe) })
	if r.Retention > 0 {
		g.Go(func() error { return r.sweep(ctx) })
	}
	g.Go(func() error {
		defer cancel() // all others end with the last interval
		for next := r.Interval; next <= r.For; next += r.Interval {
			if err := clock.Sleep(ctx, next-clock.Since(r.epoch)); err != nil {
				return err
			}
			if _, err := c.ran(); err != nil {
				return err
			}
			i, err := r.close(ctx)
			if err != nil {
				return err
			}
			list = append(list, i)
			if r.OnInterval != nil {
				r.OnInterval(i)
			}
		}
		return nil
	})
	return list, g.Wait()
}

// produce enqueues what is due, a hundred times a second, one call after the other.
func (r *steadyRun) produce(ctx context.Context) error {
	for clock.Since(r.epoch) < r.For {
		due := min(int(float64(r.Rate)*clock.Since(r.epoch).Seconds()), len(r.sent))
		for from := r.enqueued; from < due; from = r.enqueued {
			to := min(due, from+1000)
			if err := r.enqueue(ctx, from, to); err != nil {
				return err
			}
		}
		if clock.Sleep(ctx, 10*time.Millisecond) != nil {
			return nil // the time is over
		}
	}
	return nil
}

func (r *steadyRun) enqueue(ctx context.Context, from, to int) error {
	began := clock.Since(r.epoch)
	jobs := make([]pacht.NewJob, 0, to-from)
	r.mu.Lock()
	for n := from; n < to; n++ {
		r.sent[n] = began
	}
	r.mu.Unlock()
	for j := range noops(from, to, r.ArgsBytes) {
		jobs = append(jobs, j)
	}
	// Not cut off in the middle: what was sent must be counted.
	answers, err := r.p.store.Enqueue(context.WithoutCancel(ctx), jobs)
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		return fmt.Errorf("enqueue jobs %d to %d: %w", from, to-1, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enqueued = to
	r.interval.enqueued += to - from
	r.interval.slowest = max(r.interval.slowest, clock.Since(r.epoch)-began)
	return nil
}

// every calls do until the time is over.
func (r *steadyRun) every(ctx context.Context, period time.Duration, do func(context.Context) error) error {
	for clock.Sleep(ctx, period) == nil {
		if err := do(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// probe takes a few jobs itself, to time a claim as workers make them.
func (r *steadyRun) probe(ctx context.Context) error {
	began := clock.Now().Time()
	claims, err := r.p.store.Claim(ctx, pacht.ClaimRequest{Owner: "bench-probe", Queue: queue, Kinds: []string{kind}, Limit: 10})
	took := clock.Since(began)
	if err != nil {
		return fmt.Errorf("probe a claim: %w", err)
	}
	r.mu.Lock()
	r.interval.claims, r.interval.claiming = r.interval.claims+1, r.interval.claiming+took
	r.mu.Unlock()
	settle := make([]pacht.Settlement, 0, len(claims.Jobs))
	for _, j := range claims.Jobs {
		r.ran.ran(argsOf(j.Args).N)
		settle = append(settle, pacht.Settlement{Ref: j.Ref(), Outcome: pacht.OutcomeCompleted})
	}
	if len(settle) == 0 {
		return nil
	}
	if err := r.complete(ctx, settle); err != nil {
		return fmt.Errorf("complete what the probe has claimed: %w", err)
	}
	for _, j := range claims.Jobs {
		r.finished(j)
	}
	return nil
}

// complete asks again for rows that somebody has locked at the moment, as workers do.
func (r *steadyRun) complete(ctx context.Context, settle []pacht.Settlement) error {
	for ; len(settle) > 0; _ = clock.Sleep(ctx, time.Millisecond) {
		answers, err := r.p.store.Settle(ctx, settle)
		if err != nil {
			return err
		}
		var busy []pacht.Settlement
		for i, a := range answers {
			if errors.Is(a.Err, pacht.ErrBusy) {
				busy = append(busy, settle[i])
			} else {
				err = errors.Join(err, a.Err)
			}
		}
		if err != nil {
			return err
		}
		settle = busy
	}
	return nil
}

// sweep deletes what is past its retention, as a worker does.
func (r *steadyRun) sweep(ctx context.Context) error {
	s, err := sweep.New(r.p.store, sweep.Config{
		Retention: pacht.Retention{Completed: r.Retention},
		Logger:    r.p.log,
		OnSweep: func(removed sweep.Removed) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.interval.pruned += removed.Rows[pacht.SweepCompleted]
		},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// hear is told by the worker, after the commit.
func (r *steadyRun) hear(e worker.Event) {
	switch e.Type {
	case worker.EventSettled:
		r.finished(e.Job)
	case worker.EventDropped:
		r.mu.Lock()
		r.dropped += e.Count
		r.mu.Unlock()
	}
}

func (r *steadyRun) finished(j pacht.JobInfo) {
	n := argsOf(j.Args).N
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interval.done++
	if n >= 0 && n < len(r.sent) {
		r.interval.took = append(r.interval.took, clock.Since(r.epoch)-r.sent[n])
	}
}
