// Package bench measures Pacht: enqueues, drains, pickup, the steady state, heartbeats, on a
// fresh database or on one of the user's. Each scenario is one file: a struct of its settings
// with Run, and a result that says its table. A result of a drain counts only if every job ran
// exactly once: by the handlers, and by the ledger.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// The benchmark's own names. What is foreign no worker of the benchmark handles.
const (
	queue   = "bench"
	kind    = "bench.noop"
	foreign = "bench.foreign"
)

// noop is a job that does nothing. N numbers the jobs of one run from 0.
type noop struct {
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

// Kind implements pacht.Args.
func (noop) Kind() string { return kind }

// sized makes args of so many bytes of JSON, or the least that there is.
func sized(n, bytes int) noop {
	bare := len(`{"n":,"pad":""}`) + len(strconv.Itoa(n))
	return noop{N: n, Pad: strings.Repeat("x", max(bytes-bare, 0))}
}

// noops are jobs from first to before end.
func noops(first, end, bytes int) iter.Seq[pacht.NewJob] {
	return func(yield func(pacht.NewJob) bool) {
		for n := first; n < end; n++ {
			if !yield(pacht.New(sized(n, bytes), pacht.Queue(queue))) {
				return
			}
		}
	}
}

// fill enqueues n jobs and makes sure that it were n.
func fill(ctx context.Context, p *Place, n, bytes int) error {
	stored, err := pacht.NewClient(p.store).EnqueueMany(ctx, noops(0, n, bytes))
	if err == nil && stored != int64(n) {
		err = fmt.Errorf("%d were stored", stored)
	}
	if err != nil {
		return fmt.Errorf("enqueue %d jobs: %w", n, err)
	}
	return nil
}

// newWorker makes a worker as a user would: nothing but concurrency is set.
func newWorker(p *Place, concurrency int, handle func(context.Context, *pacht.Job[noop]) error, change func(*worker.Config)) (*worker.Worker, error) {
	cfg := worker.Config{
		Queues:   map[string]int{queue: concurrency},
		Handlers: []worker.Handler{worker.Handle(handle)},
		Logger:   p.log,
	}
	if change != nil {
		change(&cfg)
	}
	return worker.New(p.store, cfg)
}

// within refuses a number out of bounds.
func within(field string, n, least, most int) error {
	if n >= least && n <= most {
		return nil
	}
	return &pacht.InvalidError{Field: field, Value: strconv.Itoa(n), Bound: fmt.Sprintf("%d to %d", least, most)}
}

// mostJobs bounds what one run may put into the tables.
const mostJobs = 100_000_000

const mostArgs = 1 << 20

// argsOf reads a job's args; of jobs that are not ours, N is -1.
func argsOf(raw json.RawMessage) noop {
	a := noop{N: -1}
	if err := json.Unmarshal(raw, &a); err != nil {
		a.N = -1
	}
	return a
}
