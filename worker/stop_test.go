package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// S032: what handlers answer after the signal to stop is stored.
func TestResultsAfterTheSignalToStopAreStored(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		var begun atomic.Int32
		w := start(t, s, quick(20, func(ctx context.Context, job *pacht.Job[task]) error {
			begun.Add(1)
			select {
			case <-time.After(time.Duration(300+20*job.Args.N) * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
		ids := enqueue(t, s, 20)
		eventually(t, 10*time.Second, "all have begun", func() bool { return begun.Load() == 20 })
		if err := w.end(); err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			if st := status(t, s, id); st != pacht.Completed {
				t.Errorf("job %d is %s", id, st)
			}
		}
		workers, err := s.Workers(t.Context())
		if err != nil || len(workers) != 1 || workers[0].StoppedAt.IsZero() {
			t.Errorf("signed off: %+v, %v", workers, err)
		}
	})
}

// S029, S034, S037: a job that a graceful stop interrupts is Pending at once, with its attempt
// given back, but not before its handler has returned; five such stops use up nothing.
func TestStopGivesTheJobBackOnceItsHandlerHasReturned(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		id := enqueue(t, s, 1, pacht.MaxAttempts(3), pacht.TTL(2*time.Hour))[0]
		for round := range 5 {
			begun := make(chan struct{})
			var returned atomic.Bool
			cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
				close(begun)
				<-ctx.Done()
				if st := status(t, s, job.ID); st != pacht.Processing {
					t.Errorf("released while the handler runs: %s", st)
				}
				time.Sleep(50 * time.Millisecond) // the handler's own unwinding, not a proof
				returned.Store(true)
				return ctx.Err()
			})
			cfg.Grace = 20 * time.Millisecond
			w := start(t, s, cfg)
			select {
			case <-begun:
			case <-time.After(10 * time.Second):
				t.Fatalf("round %d: the job was not started again", round)
			}
			if err := w.end(); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			j := job(t, s, id)
			if !returned.Load() || j.Status != pacht.Pending || j.Attempt != 0 {
				t.Fatalf("round %d: handler returned %v, job %+v", round, returned.Load(), j)
			}
			if now, _ := s.Now(t.Context()); j.RunAt.After(now) {
				t.Errorf("round %d: not due at once, but at %s", round, j.RunAt)
			}
		}
		for _, a := range ledger(t, s, id) {
			if a.Outcome != pacht.OutcomeFailed || a.Error == "" {
				t.Errorf("the ledger does not explain the stop: %+v", a)
			}
		}
		checked(t, s)
	})
}

// R10: a hold job that is stopped after it started is unknown, never retried blindly.
func TestStopOfAHoldJobIsUnknown(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		begun := make(chan struct{})
		cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		})
		cfg.Grace = time.Millisecond
		w := start(t, s, cfg)
		id := enqueue(t, s, 1, pacht.OnCrash(pacht.CrashHold))[0]
		<-begun
		if err := w.end(); err != nil {
			t.Error(err)
		}
		if st := status(t, s, id); st != pacht.Stuck || !slices.Equal(outcomes(t, s, id), []pacht.Outcome{pacht.OutcomeUnknown}) {
			t.Errorf("%s, %v", st, outcomes(t, s, id))
		}
	})
}

// S033: Run's error names the jobs whose handlers ignored the stop; a handler that comes back
// afterwards, to a closed store, is no crash.
func TestStopNamesWhatWasNotFinished(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		own, err := openURL(db.url)
		if err != nil {
			t.Fatal(err)
		}
		begun, free, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		cfg := quick(2, func(ctx context.Context, job *pacht.Job[task]) error {
			close(begun)
			<-free
			if err := job.SetStep(context.Background(), "late", nil); err == nil {
				t.Error("a step was written through a closed store")
			}
			close(ended)
			return nil
		})
		cfg.Grace, cfg.Unwind = 20*time.Millisecond, 20*time.Millisecond
		w := start(t, own, cfg)
		id := enqueue(t, s, 1, pacht.TTL(time.Second), pacht.MaxAttempts(5))[0]
		<-begun
		err = w.end()
		var unfinished *worker.UnfinishedError
		if !errors.As(err, &unfinished) || len(unfinished.Jobs) != 1 || unfinished.Jobs[0].Ref != (pacht.Ref{Job: id, Token: 1}) {
			t.Errorf("Run said %v", err)
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		close(free)
		<-ended
		start(t, s, quick(1, func(context.Context, *pacht.Job[task]) error { return nil }))
		becomes(t, s, id, pacht.Completed)
		checked(t, s)
	})
}

// S035: the handler returns its context's error at the moment of the stop: one Pending row,
// one row in the ledger for each token, the attempt counted once.
func TestStopAndReturnAtOnceCloseTheLeaseOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		ids := enqueue(t, s, 50)
		cfg := quick(50, func(ctx context.Context, job *pacht.Job[task]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		cfg.Grace = time.Millisecond
		w := start(t, s, cfg)
		eventually(t, 10*time.Second, "all have begun", func() bool { return w.seen.count(worker.EventClaimed) == 50 })
		if err := w.end(); err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			if j := job(t, s, id); j.Status != pacht.Pending || j.Attempt != 0 || len(ledger(t, s, id)) != 1 {
				t.Errorf("%+v, ledger %+v", j, ledger(t, s, id))
			}
		}
		checked(t, s)
	})
}

// S042: a worker that starts before its database waits for it; one whose tables are missing
// or newer is told at once.
func TestWorkerWaitsForTheDatabaseButNotForTables(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &absent{store: db.open(t)}
		s.away.Store(true)
		id := enqueue(t, s.store, 1)[0]
		w := start(t, s, quick(1, func(context.Context, *pacht.Job[task]) error { return nil }))
		eventually(t, 10*time.Second, "it meets the absent database", func() bool { return w.Status().Errors > 1 })
		s.away.Store(false)
		becomes(t, s.store, id, pacht.Completed)

		s.version.Store(99)
		if err := start(t, s, quick(1, func(context.Context, *pacht.Job[task]) error { return nil })).wait(); !errors.Is(err, pacht.ErrSchema) {
			t.Errorf("a newer schema: %v", err)
		}
	})
}

func (r *running) wait() error {
	<-r.done
	return r.err
}

// absent is a real store that cannot be reached, or says it has another schema.
type absent struct {
	store
	away    atomic.Bool
	version atomic.Int64
}

func (a *absent) Schema(ctx context.Context) (int, int, error) {
	if a.away.Load() {
		return 0, 0, errNetwork
	}
	found, wanted, err := a.store.Schema(ctx)
	if v := a.version.Load(); v > 0 {
		found = int(v)
	}
	return found, wanted, err
}

// A store that is closed under its worker does not come back: Run says so, and ends.
func TestWorkerStopsWhenItsStoreIsClosed(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		own, err := openURL(db.url)
		if err != nil {
			t.Fatal(err)
		}
		w := start(t, own, quick(1, func(context.Context, *pacht.Job[task]) error { return nil }))
		becomes(t, own, enqueue(t, own, 1)[0], pacht.Completed)
		if err := own.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.done:
		case <-time.After(20 * time.Second):
			t.Fatal("it goes on with a closed store")
		}
		if !errors.Is(w.err, pacht.ErrClosed) {
			t.Errorf("Run said %v", w.err)
		}
		if err := start(t, own, quick(1, func(context.Context, *pacht.Job[task]) error { return nil })).wait(); !errors.Is(err, pacht.ErrClosed) {
			t.Errorf("started on a closed store: %v", err)
		}
	})
}
