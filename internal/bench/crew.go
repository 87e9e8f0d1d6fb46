package bench

import (
	"context"
	"errors"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/bench/meter"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/worker"
)

// crew is the workers of a run: one in this process, or several processes.
type crew interface {
	// begin starts the work. What it takes to be ready was done before.
	begin(ctx context.Context) error
	// ran is how many handlers have run so far. An error means that a worker has ended.
	ran() (int64, error)
	// settled waits until the workers hold nothing, and answers the CPU seconds that they
	// used since begin; nil if that is part of this process, or unknown.
	settled(ctx context.Context) (*float64, error)
	// end stops the workers, waits for their end, and answers what ran. It may be called once.
	end() (*runs, error)
}

// look is how often to look whether all is done: an error of the time measured.
const look = 2 * time.Millisecond

// local is a worker in this process.
type local struct {
	w      *worker.Worker
	runs   *runs
	cancel context.CancelFunc
	done   chan error
}

func newLocal(p *Place, concurrency, jobs int) (*local, error) {
	c := &local{runs: newRuns(jobs), cancel: func() {}}
	var err error
	c.w, err = newWorker(p, concurrency, func(_ context.Context, job *pacht.Job[noop]) error {
		c.runs.ran(job.Args.N)
		return nil
	}, nil)
	return c, err
}

func (c *local) begin(ctx context.Context) error {
	c.done, c.cancel = runWorker(ctx, c.w)
	return nil
}

// runWorker runs a worker until cancel; its end is in the channel then.
func runWorker(ctx context.Context, w *worker.Worker) (done chan error, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(ctx)
	done = make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return done, cancel
}

func (c *local) ran() (int64, error) {
	return c.runs.total.Load() + c.runs.strange.Load(), running(c.done)
}

func running(done chan error) error {
	select {
	case err := <-done:
		done <- err // for whoever waits for the end
		return errors.Join(errors.New("the worker has ended"), err)
	default:
		return nil
	}
}

func (c *local) settled(ctx context.Context) (*float64, error) {
	return nil, untilIdle(ctx, c.w)
}

// untilIdle waits until a worker holds nothing: the last settle was answered.
func untilIdle(ctx context.Context, w *worker.Worker) error {
	for w.Status().Held > 0 {
		if err := clock.Sleep(ctx, look); err != nil {
			return err
		}
	}
	return nil
}

func (c *local) end() (*runs, error) {
	c.cancel()
	if c.done == nil {
		return c.runs, nil
	}
	return c.runs, <-c.done
}

// stalled is how long nothing may happen until a run is given up: a lease that ran out comes
// back within this time.
const stalled = 90 * time.Second

// await waits until the crew has run n handlers and settled them. It says false if nothing
// happened for too long.
func await(ctx context.Context, c crew, n int64) (*float64, bool, error) {
	var last int64
	began := clock.Now()
	moved := began
	for {
		ran, err := c.ran()
		if err != nil {
			return nil, false, err
		}
		if ran >= n {
			cpu, err := c.settled(ctx)
			return cpu, true, err
		}
		if ran > last {
			last, moved = ran, clock.Now()
		}
		if moved.Elapsed() > stalled {
			return nil, false, nil
		}
		if err := clock.Sleep(ctx, pause(began.Elapsed(), ran, n)); err != nil {
			return nil, false, err
		}
	}
}

// pause is until the next look: half of what the rest may take, so that looking costs nothing
// while there is much to do, and the end is seen at once.
func pause(elapsed time.Duration, ran, n int64) time.Duration {
	rest := float64(elapsed) * float64(n-ran) / float64(max(ran, 1))
	return time.Duration(min(max(rest/2, float64(look)), float64(100*time.Millisecond)))
}

// cpuSince is the CPU seconds of this process since a reading.
func cpuSince(from time.Duration) *float64 {
	now, ok := meter.OwnCPU()
	if !ok {
		return nil
	}
	s := (now - from).Seconds()
	return &s
}
