// Package sweep is maintenance: it deletes what has outlived its use. Finished jobs go, with
// all their history, when their retention is over, if one is set; expired idempotency keys and
// rows of worker processes that are long gone always go.
//
// Any number may run: the database gives one of them the turn for each page (see
// pacht.Sweeper), and nobody holds a lock between pages. A sweep that is late harms nothing: an
// expired key counts as expired, whether its row is still there or not.
package sweep

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

// Config is how to sweep. With the zero value finished jobs are kept for ever.
type Config struct {
	// Retention says how long finished jobs are kept; the zero value: for ever.
	Retention pacht.Retention
	// Workers is how long the row of a worker process is kept after its end, or after its last
	// beat if it crashed: 1m to 100 years; 0 = 24h.
	Workers time.Duration
	// Period is the time between two looks: 100ms to 24h. 0 = a twentieth of the shortest
	// retention, at least 1s and at most 1m.
	Period time.Duration
	// Limit is how many rows one transaction looks at, and deletes at most: 1 to
	// pacht.MaxBatch, 0 = 1000.
	Limit int
	// By names who sweeps; "" = "sweeper".
	By string
	// Logger gets a line when something was deleted or refused, and the first of a row of
	// errors; nil = slog.Default().
	Logger *slog.Logger
	// OnSweep is called after each round that did something, with what. It must not block.
	OnSweep func(Removed)
}

// Removed is what one round deleted, by target.
type Removed struct {
	Rows map[pacht.Target]int
	// Refused is how many could not be deleted because the database forbids it.
	Refused int
}

// Sweeper sweeps. Made by New.
type Sweeper struct {
	store pacht.Sweeper
	cfg   Config
	tasks []pacht.SweepRequest
}

// New checks the configuration. It does not touch the database.
func New(store pacht.Sweeper, cfg Config) (*Sweeper, error) {
	if err := cfg.Retention.Validate(); err != nil {
		return nil, err
	}
	kept := map[pacht.Target]time.Duration{
		pacht.SweepCompleted: cfg.Retention.Completed,
		pacht.SweepDead:      cfg.Retention.Dead,
		pacht.SweepCancelled: cfg.Retention.Cancelled,
	}
	if cfg.Workers == 0 {
		cfg.Workers = 24 * time.Hour
	}
	if cfg.Workers < time.Minute {
		return nil, &pacht.InvalidError{Field: "retention of workers", Value: cfg.Workers.String(), Bound: "0 (24h), or 1m to 100 years"}
	}
	if cfg.Period == 0 {
		cfg.Period = time.Minute
		for _, each := range kept {
			if each > 0 {
				cfg.Period = max(min(cfg.Period, each/20), time.Second)
			}
		}
	}
	if cfg.Period < 100*time.Millisecond {
		return nil, &pacht.InvalidError{Field: "sweep period", Value: cfg.Period.String(), Bound: "100ms to 24h"}
	}
	if cfg.Limit == 0 {
		cfg.Limit = 1000
	}
	if cfg.By == "" {
		cfg.By = "sweeper"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	kept[pacht.SweepWorkers] = cfg.Workers
	s := &Sweeper{store: store, cfg: cfg}
	for _, target := range pacht.Targets {
		req := pacht.SweepRequest{By: cfg.By, Target: target, OlderThan: kept[target], Limit: cfg.Limit, Period: cfg.Period}
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if req.OlderThan > 0 || target == pacht.SweepKeys {
			s.tasks = append(s.tasks, req)
		}
	}
	if store == nil {
		return nil, &pacht.InvalidError{Field: "store", Value: "nil", Bound: "an open store"}
	}
	return s, nil
}

// Run sweeps until ctx ends, and then returns nil, or until the store is closed
// (pacht.ErrClosed). Other errors of the database do not end it: the first of a row is
// logged, and it tries on with the next period.
func (s *Sweeper) Run(ctx context.Context) error {
	failing := false
	for {
		// Asked twice in a period, a look that is due is at most half a period late; and processes
		// that were started together should not ask in step.
		if clock.Sleep(ctx, clock.Jitter(s.cfg.Period/2)) != nil {
			return nil
		}
		switch err := s.Round(ctx); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, pacht.ErrClosed):
			return fmt.Errorf("sweeper: %w", err) // no waiting brings it back
		case err != nil && !failing:
			s.cfg.Logger.Error("sweeping failed; nothing of the failed page was deleted; tries on", "sweeper", s.cfg.By, "error", err)
			failing = true
		case err == nil:
			failing = false
		}
	}
}

// Round sweeps each target that is due once, page by page, for a period at most; what is left
// then comes with the next round. A target that fails does not stop the others.
func (s *Sweeper) Round(ctx context.Context) error {
	began := clock.Now()
	done := Removed{Rows: map[pacht.Target]int{}}
	var failed error
	for _, req := range s.tasks {
		if err := s.look(ctx, req, began, &done); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	s.tell(done)
	return failed
}

// look asks for pages of one target until its look is at its end. Between two it rests as long
// as the last one took: sweeping takes half of one connection's time at most.
func (s *Sweeper) look(ctx context.Context, req pacht.SweepRequest, began clock.Instant, done *Removed) error {
	for {
		page := clock.Now()
		call, cancel := context.WithTimeout(ctx, callTimeout)
		swept, err := s.store.Sweep(call, req)
		cancel()
		if swept.Removed > 0 {
			failpoint.Here("sweep.removed") // a page is committed, and the look is not at its end
		}
		if err != nil {
			return err
		}
		done.Rows[req.Target] += swept.Removed
		done.Refused += swept.Refused
		if !swept.More || began.Elapsed() > s.cfg.Period || clock.Sleep(ctx, page.Elapsed()) != nil {
			return nil // the end of ctx shows in Run
		}
	}
}

func (s *Sweeper) tell(done Removed) {
	var attrs []any
	for _, target := range pacht.Targets {
		if n := done.Rows[target]; n > 0 {
			attrs = append(attrs, attrOf[target], n)
		}
	}
	if len(attrs) > 0 {
		s.cfg.Logger.Info("deleted what is past its retention", append(attrs, "sweeper", s.cfg.By)...)
	}
	if done.Refused > 0 {
		s.cfg.Logger.Warn("the database refuses to delete rows that are past their retention; passed over", "rows", done.Refused, "sweeper", s.cfg.By)
	}
	if s.cfg.OnSweep != nil && (len(attrs) > 0 || done.Refused > 0) {
		s.cfg.OnSweep(done)
	}
}

var attrOf = map[pacht.Target]string{
	pacht.SweepCompleted: "completed",
	pacht.SweepDead:      "dead",
	pacht.SweepCancelled: "cancelled",
	pacht.SweepKeys:      "keys",
	pacht.SweepWorkers:   "workers",
}
