// Package watch is the Stuck Watcher: it finds leases past their time and closes them, so
// that a job whose worker died is free again, or parked where its policy or a cap says so.
//
// Any number of watchers may run: the database gives one of them the turn (see
// pacht.Expirer). Only lease_until decides what has expired (R6). A watcher needs no queue
// and holds no lock between passes, so nothing can stop the others from going on.
package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// callTimeout bounds one call, so that a connection on which nobody answers cannot stop it.
const callTimeout = time.Minute

// Config is a watcher's configuration; the zero value works.
type Config struct {
	// Period is the longest time between two passes: 10ms to 1h, 0 = 30s. Passes come earlier
	// when a lease is known to end earlier. Where none is, they come after 100 times what one takes,
	// up to five minutes, if that is longer: looking through millions of waiting jobs must not cost
	// much. The missed beats of a worker that died bring a pass, which finds out when its leases end.
	Period time.Duration
	// Poll is how often to ask whether a pass is due: 10ms to Period, 0 = 1.5s or Period,
	// whichever is less.
	Poll time.Duration
	// Limit bounds the leases closed by one statement: 1 to pacht.MaxBatch, 0 = 1000.
	Limit int
	// AfterOutage is how long the first pass waits after a time without database, so that
	// holders who come back with their work done settle first (R7); 0 = 20s, a renewal period
	// of the default TTL. It is never longer than Period.
	AfterOutage time.Duration
	// By names this watcher; "" = "watcher".
	By string
	// Logger gets a line for each lease that was closed, and the first of a row of errors; nil
	// = slog.Default().
	Logger *slog.Logger
	// OnPass is called after each pass, with what it did. It must not block.
	OnPass func(pacht.Pass)
}

// Store is what a watcher needs: passes, and renewals, to find out whether holders can be heard
// again after an outage.
type Store interface {
	pacht.Expirer
	Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error)
}

// Watcher is a Stuck Watcher, made by New.
type Watcher struct {
	store Store
	cfg   Config
}

// New checks the configuration. It does not touch the database.
func New(store Store, cfg Config) (*Watcher, error) {
	if cfg.Period == 0 {
		cfg.Period = 30 * time.Second
	}
	if cfg.Poll == 0 {
		cfg.Poll = min(1500*time.Millisecond, cfg.Period)
	}
	if cfg.Limit == 0 {
		cfg.Limit = 1000
	}
	if cfg.AfterOutage == 0 {
		cfg.AfterOutage = min(20*time.Second, cfg.Period)
	}
	if cfg.By == "" {
		cfg.By = "watcher"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	w := &Watcher{store: store, cfg: cfg}
	if err := w.request().Validate(); err != nil {
		return nil, err
	}
	if cfg.Poll < 10*time.Millisecond || cfg.Poll > cfg.Period {
		return nil, &pacht.InvalidError{Field: "watch poll", Value: cfg.Poll.String(), Bound: "10ms to the watch period, which is " + cfg.Period.String()}
	}
	if cfg.AfterOutage < 0 || cfg.AfterOutage > cfg.Period {
		return nil, &pacht.InvalidError{Field: "watch wait after an outage", Value: cfg.AfterOutage.String(), Bound: "0 to the watch period, which is " + cfg.Period.String()}
	}
	if store == nil {
		return nil, &pacht.InvalidError{Field: "store", Value: "nil", Bound: "an open store"}
	}
	return w, nil
}

func (w *Watcher) request() pacht.ExpireRequest {
	return pacht.ExpireRequest{By: w.cfg.By, Limit: w.cfg.Limit, Period: w.cfg.Period}
}

// Run watches until ctx ends, and then returns nil, or until the store is closed
// (pacht.ErrClosed). Other errors of the database do not end it: the first of a row is
// logged, and it asks on.
func (w *Watcher) Run(ctx context.Context) error {
	out := false
	for {
		switch err := w.pass(ctx); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, pacht.ErrClosed):
			return fmt.Errorf("watcher: %w", err) // no waiting brings it back
		case err != nil && !out:
			w.cfg.Logger.Error("watcher cannot reach the database; asks on", "watcher", w.cfg.By, "error", err)
			out = true
		case err == nil:
			out = false
		}
		if out && w.outage(ctx) != nil || clock.Sleep(ctx, clock.Jitter(w.cfg.Poll)) != nil {
			return nil
		}
	}
}

// outage waits until the database takes writes, and then on: counted from the last failure, the
// holders would have whatever happens to be left of that time (R7). A database that only reads,
// as a standby before its promotion does, is out: no holder can settle there.
func (w *Watcher) outage(ctx context.Context) error {
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := w.store.Renew(call, []pacht.Ref{{}}) // no job has it
		cancel()
		switch {
		case err == nil:
			return clock.Sleep(ctx, clock.Jitter(w.cfg.AfterOutage))
		case errors.Is(err, pacht.ErrClosed):
			return nil // the next pass meets it again, and ends
		}
		if err := clock.Sleep(ctx, clock.Jitter(w.cfg.Poll)); err != nil {
			return err
		}
	}
}

// pass makes one pass if one is due, page by page.
func (w *Watcher) pass(ctx context.Context) error {
	req := w.request()
	for {
		failpoint.Here("watch.pass.before")
		call, cancel := context.WithTimeout(ctx, callTimeout)
		p, err := w.store.Expire(call, req)
		cancel()
		if err != nil || !p.Turn {
			return err
		}
		failpoint.Here("watch.pass.answered")
		for _, e := range p.Expired {
			w.cfg.Logger.Warn("lease expired", "job", e.Ref.Job, "token", e.Ref.Token, "kind", e.Kind, "queue", e.Queue,
				"owner", e.Owner, "lag", p.Now.Sub(e.LeaseUntil), "next_status", e.Next, "crashes", e.Crashes)
		}
		if len(p.Locked) > 0 {
			w.cfg.Logger.Warn("expired leases are locked by another session; left for the next pass", "leases", len(p.Locked), "first", p.Locked[0].Job)
		}
		if w.cfg.OnPass != nil {
			w.cfg.OnPass(p)
		}
		if p.More == 0 {
			return nil
		}
		req.Force, req.After = true, p.More
	}
}
