package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/worker"
)

// Pickup measures how soon an idle worker starts a job: from the return of the enqueue, which
// is after the commit, to the handler's start. Then it lets the worker idle and counts what it
// asks of the database.
type Pickup struct {
	Jobs      int
	Every     time.Duration
	Idle      time.Duration // how long to count an idle worker's transactions; 0 = not
	Poll      time.Duration // of the worker; 0 = its default
	PollOnly  bool          // the worker does not listen for notices
	ArgsBytes int
}

// PickupResult is the latencies in milliseconds.
type PickupResult struct {
	Jobs        int      `json:"jobs"`
	P50         float64  `json:"p50_ms"`
	P90         float64  `json:"p90_ms"`
	P99         float64  `json:"p99_ms"`
	Max         float64  `json:"max_ms"`
	IdleQueries *float64 `json:"idle_queries_per_s"`
	ExactlyOnce bool     `json:"exactly_once"`
	why         string
	facts       string
}

// Validate refuses settings out of bounds.
func (u Pickup) Validate() error {
	switch {
	case u.Every < 0 || u.Every > time.Hour:
		return &pacht.InvalidError{Field: "every", Value: u.Every.String(), Bound: "0 to 1h"}
	case u.Idle < 0 || u.Idle > time.Hour:
		return &pacht.InvalidError{Field: "idle", Value: u.Idle.String(), Bound: "0 to 1h"}
	}
	return errors.Join(within("jobs", u.Jobs, 1, 1_000_000), within("args-bytes", u.ArgsBytes, 1, mostArgs))
}

// Run measures.
func (u Pickup) Run(ctx context.Context, p *Place) (res PickupResult, err error) {
	if err := u.Validate(); err != nil {
		return res, err
	}
	base, err := p.newest(ctx)
	if err != nil {
		return res, err
	}
	ran := newRuns(u.Jobs)
	started, stored := make([]atomic.Int64, u.Jobs), make([]time.Time, u.Jobs)
	epoch := clock.Now().Time()
	w, err := newWorker(p, 10, func(_ context.Context, job *pacht.Job[noop]) error {
		if n := job.Args.N; n >= 0 && n < u.Jobs {
			started[n].Store(int64(clock.Since(epoch)))
		}
		ran.ran(job.Args.N)
		return nil
	}, func(cfg *worker.Config) { cfg.Poll, cfg.NoListen = u.Poll, u.PollOnly })
	if err != nil {
		return res, err
	}
	done, cancel := runWorker(ctx, w)
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	defer func() { err = errors.Join(err, stop()) }()

	listens, err := u.listening(ctx, p, w)
	if err != nil {
		return res, err
	}
	client := pacht.NewClient(p.store)
	for n := range u.Jobs {
		if _, err := client.Enqueue(ctx, sized(n, u.ArgsBytes), pacht.Queue(queue)); err != nil {
			return res, fmt.Errorf("enqueue job %d: %w", n, err)
		}
		stored[n] = clock.Now().Time()
		if err := clock.Sleep(ctx, u.Every); err != nil {
			return res, err
		}
	}
	if _, _, err := await(ctx, &local{w: w, runs: ran, done: done}, int64(u.Jobs)); err != nil {
		return res, err
	}
	if res.IdleQueries, err = u.idle(ctx, p); err != nil {
		return res, err
	}
	if err := stop(); err != nil {
		return res, fmt.Errorf("stop the worker: %w", err)
	}
	latencies := make([]time.Duration, u.Jobs)
	for n := range latencies {
		// A handler may start before the enqueue's answer is here.
		latencies[n] = max(time.Duration(started[n].Load())-stored[n].Sub(epoch), 0)
	}
	slices.Sort(latencies)
	b, err := p.books(ctx, base)
	if err != nil {
		return res, err
	}
	res.Jobs, res.why = u.Jobs, verdict(ran, u.Jobs, b, false)
	res.ExactlyOnce = res.why == ""
	res.P50, res.P90 = ms(quantile(latencies, 0.5)), ms(quantile(latencies, 0.9))
	res.P99, res.Max = ms(quantile(latencies, 0.99)), ms(quantile(latencies, 1))
	how := "woken by notices"
	if !listens {
		how = "polling alone"
	}
	if u.Poll != 0 {
		how += ", poll every " + u.Poll.String()
	}
	res.facts, err = p.facts(ctx, fmt.Sprintf("one job every %s, args %d bytes, 1 process, %s", u.Every, u.ArgsBytes, how))
	return res, err
}

// listening waits until notices have proven to reach the worker, and says whether they do: not
// behind every pooler, and not on SQLite.
func (u Pickup) listening(ctx context.Context, p *Place, w *worker.Worker) (bool, error) {
	if u.PollOnly || !p.onPostgres() {
		return false, nil
	}
	for since := clock.Now(); !w.Status().Listening; {
		if since.Elapsed() > 10*time.Second {
			return false, nil
		}
		if err := clock.Sleep(ctx, look); err != nil {
			return false, err
		}
	}
	return true, nil
}

// idle counts the transactions of the database while the worker has nothing to do. A session
// that has become idle may report its last ones ten seconds later, so that is waited for.
func (u Pickup) idle(ctx context.Context, p *Place) (*float64, error) {
	if u.Idle == 0 || !p.onPostgres() {
		return nil, nil
	}
	if err := clock.Sleep(ctx, min(12*time.Second, u.Idle+u.Idle/5)); err != nil {
		return nil, err
	}
	var before, after int64
	if err := p.tables.row(ctx, p.serve.Transactions, nil, &before); err != nil {
		return nil, fmt.Errorf("count transactions: %w", err)
	}
	since := clock.Now().Time()
	if err := clock.Sleep(ctx, u.Idle); err != nil {
		return nil, err
	}
	if err := p.tables.row(ctx, p.serve.Transactions, nil, &after); err != nil {
		return nil, fmt.Errorf("count transactions: %w", err)
	}
	// Our first question is one of them.
	per := float64(max(after-before-1, 0)) / clock.Since(since).Seconds()
	return &per, nil
}

// Table implements Result.
func (r PickupResult) Table() Table {
	t := Table{
		Header: []string{"JOBS", "P50 MS", "P90 MS", "P99 MS", "MAX MS", "IDLE QUERIES/S"},
		Rows: [][]string{{
			fmt.Sprint(r.Jobs), number(&r.P50, 2), number(&r.P90, 2), number(&r.P99, 2), number(&r.Max, 2), number(r.IdleQueries, 2),
		}},
		Facts: r.facts,
	}
	if r.why != "" {
		t.Faults = append(t.Faults, "not exactly once: "+r.why)
	}
	return t
}
