package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/worker"
)

// Heartbeat measures what it costs to hold leases, and to watch over them: a worker holds them
// and renews, nothing else happens. With Leases 0 and Pending rows it is the watcher's cost.
type Heartbeat struct {
	Leases   int
	For      time.Duration
	TTL      time.Duration
	Pending  int // vacant leases beside them, due tomorrow
	Snapshot bool
}

// HeartbeatResult is the cost. A nil figure is unknown here.
type HeartbeatResult struct {
	Leases     int      `json:"leases"`
	Pending    int      `json:"pending"`
	Seconds    float64  `json:"seconds"`
	ServerCore *float64 `json:"server_cpu_share_of_core"`
	ClientCore *float64 `json:"client_cpu_share_of_core"`
	Renewals   *int64   `json:"renewals"`
	HOT        *float64 `json:"hot_ratio"`
	WAL        *float64 `json:"wal_bytes_per_renewal"`
	// KeptAll says that no lease was lost: each job ran once, until its handler returned.
	KeptAll bool `json:"kept_all"`
	why     string
	facts   string
}

// Validate refuses settings out of bounds.
func (h Heartbeat) Validate() error {
	switch {
	case h.For <= 0 || h.For > 24*time.Hour:
		return &pacht.InvalidError{Field: "for", Value: h.For.String(), Bound: "more than 0, up to 24h"}
	case h.TTL < pacht.MinTTL || h.TTL > pacht.MaxTTL:
		return &pacht.InvalidError{Field: "ttl", Value: h.TTL.String(), Bound: "100ms to 24h"}
	}
	return errors.Join(within("leases", h.Leases, 0, 100_000), within("pending", h.Pending, 0, mostState))
}

// updates is what the server has counted of updates on the leases.
type updates struct{ all, hot int64 }

func (p *Place) updates(ctx context.Context) (u updates, err error) {
	if err := p.tables.row(ctx, p.serve.Updates, []any{p.schema + "leases"}, &u.all, &u.hot); err != nil {
		return u, fmt.Errorf("count updates: %w", err)
	}
	return u, nil
}

// Run measures.
func (h Heartbeat) Run(ctx context.Context, p *Place) (res HeartbeatResult, err error) {
	if err := h.Validate(); err != nil {
		return res, err
	}
	if err := (State{Future: h.Pending}).write(ctx, p); err != nil {
		return res, err
	}
	if h.Snapshot {
		end, err := p.snapshot(ctx)
		if err != nil {
			return res, err
		}
		defer func() { _ = end() }() // a reader's: nothing is lost with it
	}
	base, err := p.newest(ctx)
	if err != nil {
		return res, err
	}
	var before updates
	if p.onPostgres() {
		if before, err = p.updates(ctx); err != nil {
			return res, err
		}
	}
	if err := h.fill(ctx, p); err != nil {
		return res, err
	}
	ran, release := newRuns(h.Leases), make(chan struct{})
	w, err := newWorker(p, max(h.Leases, 1), func(ctx context.Context, job *pacht.Job[noop]) error {
		ran.ran(job.Args.N)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, func(cfg *worker.Config) { cfg.Grace = time.Millisecond })
	if err != nil {
		return res, err
	}
	done, cancel := runWorker(ctx, w)
	c := &local{w: w, runs: ran, done: done, cancel: cancel}
	ended := false
	defer func() {
		if !ended {
			_, stop := c.end()
			err = errors.Join(err, stop)
		}
	}()
	if err := holding(ctx, c, int64(h.Leases)); err != nil {
		return res, err
	}
	if p.onPostgres() { // sessions report late, and claims are updates too
		if before, err = h.claimed(ctx, p, before); err != nil {
			return res, err
		}
	}
	m, err := p.meter(ctx)
	if err != nil {
		return res, err
	}
	if err := clock.Sleep(ctx, h.For); err != nil {
		return res, err
	}
	used, err := m.Stop(ctx)
	if err != nil {
		return res, err
	}
	close(release)
	if err := untilIdle(ctx, w); err != nil {
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
	res = HeartbeatResult{Leases: h.Leases, Pending: h.Pending, Seconds: used.Seconds, why: verdict(ran, h.Leases, b, false)}
	res.KeptAll = res.why == ""
	res.ServerCore, res.ClientCore = share(used.ServerCPU, used.Seconds), share(used.ClientCPU, used.Seconds)
	if p.onPostgres() {
		if err := res.count(ctx, p, before, used.WAL); err != nil {
			return res, err
		}
	}
	more := fmt.Sprintf("TTL %s, renewed every %s, 1 process with its watcher", h.TTL, h.TTL/3)
	if h.Snapshot {
		more += ", an open snapshot"
	}
	res.facts, err = p.facts(ctx, more)
	return res, err
}

func (h Heartbeat) fill(ctx context.Context, p *Place) error {
	if h.Leases == 0 {
		return nil
	}
	jobs := make([]pacht.NewJob, 0, h.Leases)
	for n := range h.Leases {
		jobs = append(jobs, pacht.New(noop{N: n}, pacht.Queue(queue), pacht.TTL(h.TTL)))
	}
	answers, err := p.store.Enqueue(ctx, jobs)
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		return fmt.Errorf("enqueue %d jobs: %w", h.Leases, err)
	}
	return nil
}

// holding waits until so many handlers run.
func holding(ctx context.Context, c *local, n int64) error {
	for since := clock.Now(); ; {
		ran, err := c.ran()
		switch {
		case err != nil:
			return err
		case ran >= n:
			return nil
		case since.Elapsed() > stalled:
			return fmt.Errorf("after %s only %d of %d leases are held", stalled, ran, n)
		}
		if err := clock.Sleep(ctx, look); err != nil {
			return err
		}
	}
}

// claimed waits until the sessions have reported the updates of the claims: they do so a second
// after the last report, or when they next have something to do.
func (h Heartbeat) claimed(ctx context.Context, p *Place, before updates) (now updates, err error) {
	for since := clock.Now(); ; {
		if now, err = p.updates(ctx); err != nil || now.all >= before.all+int64(h.Leases) || since.Elapsed() > 20*time.Second {
			return now, err
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return now, err
		}
	}
}

// count reads the server's figures when the worker's sessions have ended, and so reported all.
func (r *HeartbeatResult) count(ctx context.Context, p *Place, before updates, wal *float64) error {
	if err := p.closeStore(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	var now, last updates
	for since, same := clock.Now(), 0; same < 5 && since.Elapsed() < 5*time.Second; same++ {
		var err error
		if now, err = p.updates(ctx); err != nil {
			return err
		}
		if now != last {
			last, same = now, 0
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	renewals := now.all - before.all
	r.Renewals = &renewals
	if renewals > 0 {
		hot := float64(now.hot-before.hot) / float64(renewals)
		r.HOT = &hot
		if wal != nil {
			per := *wal / float64(renewals)
			r.WAL = &per
		}
	}
	return nil
}

func share(cpu *float64, seconds float64) *float64 {
	if cpu == nil {
		return nil
	}
	s := *cpu / seconds
	return &s
}

// Table implements Result.
func (r HeartbeatResult) Table() Table {
	percent := func(v *float64) string {
		if v == nil {
			return ""
		}
		of := *v * 100
		return number(&of, 2) + " %"
	}
	renewals := ""
	if r.Renewals != nil {
		renewals = fmt.Sprint(*r.Renewals)
	}
	t := Table{
		Header: []string{"LEASES", "PENDING", "SECONDS", "SERVER, OF A CORE", "CLIENT, OF A CORE", "RENEWALS", "HOT", "WAL B/RENEWAL"},
		Rows: [][]string{{
			fmt.Sprint(r.Leases), fmt.Sprint(r.Pending), number(&r.Seconds, 1), percent(r.ServerCore), percent(r.ClientCore),
			renewals, percent(r.HOT), number(r.WAL, 0),
		}},
		Facts: r.facts,
	}
	if r.why != "" {
		t.Faults = append(t.Faults, "a lease was not kept: "+r.why)
	}
	return t
}
