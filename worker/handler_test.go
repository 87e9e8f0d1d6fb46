package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// Each answer of a handler means what its class says, and the ledger has it.
func TestWhatHandlersAnswerIsSettled(t *testing.T) {
	boom := errors.New("boom")
	cases := []struct {
		name    string
		answer  func() error
		outcome pacht.Outcome
		status  pacht.Status
		attempt int
		says    string
	}{
		{"nil", func() error { return nil }, pacht.OutcomeCompleted, pacht.Completed, 1, ""},
		{"plain", func() error { return boom }, pacht.OutcomeFailed, pacht.Pending, 1, "boom"},
		{"permanent", func() error { return fmt.Errorf("wrapped: %w", pacht.Permanent(boom)) }, pacht.OutcomeFailed, pacht.Dead, 1, "wrapped: boom"},
		{"retry after", func() error { return pacht.RetryAfter(time.Hour, boom) }, pacht.OutcomeFailed, pacht.Pending, 1, "boom"},
		{"snooze", func() error { return pacht.Snooze(time.Hour) }, pacht.OutcomeSnoozed, pacht.Pending, 0, ""},
		{"cancel", func() error { return pacht.Cancel(boom) }, pacht.OutcomeCancelled, pacht.Cancelled, 1, "boom"},
		{"unknown", func() error { return pacht.UnknownOutcome(boom) }, pacht.OutcomeUnknown, pacht.Stuck, 1, "boom"},
		// S076: a panic of the handler's own goroutine is a failure with its stack.
		{"panic", func() error { panic("kaboom") }, pacht.OutcomeFailed, pacht.Pending, 1, "handler panicked: kaboom"},
		{"panic nil", func() error { panic(nil) }, pacht.OutcomeFailed, pacht.Pending, 1, "handler panicked"},
		{"goexit", func() error { runtime.Goexit(); return nil }, pacht.OutcomeFailed, pacht.Pending, 1, "runtime.Goexit"},
		// S072: an error of any size and encoding is recorded.
		{"huge", func() error { return errors.New(strings.Repeat("\xff\x00", 10<<20)) }, pacht.OutcomeFailed, pacht.Pending, 1, "[cut]"},
	}
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		cfg := quick(len(cases), func(ctx context.Context, job *pacht.Job[task]) error { return cases[job.Args.N].answer() })
		cfg.Retry = pacht.Fixed(time.Hour)
		w := start(t, s, cfg)
		ids := enqueue(t, s, len(cases))
		eventually(t, 20*time.Second, "all are settled", func() bool { return w.seen.count(worker.EventSettled) == len(cases) })
		for i, c := range cases {
			got := ledger(t, s, ids[i])
			if len(got) != 1 || got[0].Outcome != c.outcome || got[0].NextStatus != c.status || !strings.Contains(got[0].Error, c.says) {
				t.Errorf("%s: ledger %.300v", c.name, got)
			}
			j := job(t, s, ids[i])
			if j.Status != c.status || j.Attempt != c.attempt {
				t.Errorf("%s: %s, attempt %d, want %s, %d", c.name, j.Status, j.Attempt, c.status, c.attempt)
			}
			if c.status == pacht.Pending && j.RunAt.Sub(got[0].EndedAt) != time.Hour {
				t.Errorf("%s: runs again %s after its end", c.name, j.RunAt.Sub(got[0].EndedAt))
			}
		}
		checked(t, s)
	})
}

// S079: max_attempts counts executions, not retries.
func TestExactlyMaxAttemptsExecutions(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		var mu sync.Mutex
		runs := map[pacht.ID][]int{}
		cfg := quick(3, func(_ context.Context, job *pacht.Job[task]) error {
			mu.Lock()
			defer mu.Unlock()
			runs[job.ID] = append(runs[job.ID], job.Attempt)
			return errors.New("no")
		})
		cfg.Retry = pacht.Fixed(time.Millisecond)
		start(t, s, cfg)
		for most := 1; most <= 3; most++ {
			id := enqueue(t, s, 1, pacht.MaxAttempts(most))[0]
			becomes(t, s, id, pacht.Dead)
			mu.Lock()
			if want := []int{1, 2, 3}[:most]; !slices.Equal(runs[id], want) {
				t.Errorf("max_attempts %d: attempts %v", most, runs[id])
			}
			mu.Unlock()
		}
	})
}

// S005: one meaning for each value of a timeout: unset is the worker's, 0 is none, negative
// is refused; and none of them changes the lease.
func TestTimeoutsMeanTheSameEverywhere(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		never, short, negative := time.Duration(0), 50*time.Millisecond, -time.Second
		for _, own := range []*time.Duration{nil, &never, &short, &negative} {
			for _, general := range []time.Duration{0, short, negative} {
				name := fmt.Sprintf("worker %s, kind %v", general, own)
				var cause error
				h := worker.HandleWith(worker.HandlerOptions{Timeout: own}, func(ctx context.Context, job *pacht.Job[task]) error {
					select {
					case <-ctx.Done():
						cause = context.Cause(ctx)
						return ctx.Err()
					case <-time.After(500 * time.Millisecond):
						return nil
					}
				})
				cfg := quick(1, nil)
				cfg.Handlers, cfg.Timeout, cfg.NoWatch, cfg.Retry = []worker.Handler{h}, general, true, pacht.Fixed(time.Hour)
				w, err := worker.New(s, cfg)
				if general < 0 || own != nil && *own < 0 {
					var invalid *pacht.InvalidError
					if !errors.As(err, &invalid) || invalid.Value != "-1s" {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				id := enqueue(t, s, 1)[0]
				if _, ran, err := w.RunOne(t.Context()); err != nil || !ran {
					t.Fatalf("%s: ran %v, %v", name, ran, err)
				}
				limited := own == nil && general > 0 || own != nil && *own > 0
				got := ledger(t, s, id)
				if limited != errors.Is(cause, pacht.ErrTimeout) || limited != (got[0].Outcome == pacht.OutcomeFailed) || len(got) != 1 {
					t.Errorf("%s: cause %v, ledger %+v", name, cause, got)
				}
			}
		}
	})
}

// S023: a handler that ignores its context blocks its slot, is shown with its stack, and its
// job leaves Processing all the same; with StopWhenWedged the worker ends and names it.
func TestWedgedHandlersAreShownAndLeftToExpire(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		free := make(chan struct{})
		defer close(free)
		cfg := quick(1, func(context.Context, *pacht.Job[task]) error { blockForever(free); return nil })
		cfg.Timeout, cfg.TimeoutGrace, cfg.StopWhenWedged = 50*time.Millisecond, 100*time.Millisecond, true
		cfg.Grace, cfg.Unwind = 10*time.Millisecond, 10*time.Millisecond
		id := enqueue(t, s, 1, pacht.TTL(time.Second), pacht.MaxAttempts(1))[0]
		var log bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w := start(t, s, cfg)
		select {
		case <-w.done:
		case <-time.After(10 * time.Second):
			t.Fatal("the worker went on with all slots wedged")
		}
		var unfinished *worker.UnfinishedError
		if !errors.As(w.err, &unfinished) || len(unfinished.Jobs) != 1 || unfinished.Jobs[0].Ref.Job != id || unfinished.Jobs[0].Returned {
			t.Errorf("Run said %v", w.err)
		}
		if w.seen.count(worker.EventWedged) != 1 || !strings.Contains(log.String(), "blockForever") {
			t.Errorf("%d wedged events; log %s", w.seen.count(worker.EventWedged), log.String())
		}
		start(t, db.open(t), quick(1, func(context.Context, *pacht.Job[task]) error { return nil })) // watches
		becomes(t, s, id, pacht.Stuck)
		checked(t, s)
	})
}

func blockForever(free chan struct{}) { <-free }

// The request of a cancel reaches the handler with a renewal; whatever it then says, the job
// is never retried.
func TestCancelRequestReachesTheHandler(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		causes := make(chan error, 1)
		start(t, s, quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}))
		id := enqueue(t, s, 1, pacht.TTL(time.Second))[0]
		becomes(t, s, id, pacht.Processing)
		if st, err := s.Cancel(t.Context(), id, pacht.Act{By: "test", Reason: "not needed"}); err != nil || st != pacht.Processing {
			t.Fatalf("cancel: %s, %v", st, err)
		}
		if cause := <-causes; !errors.Is(cause, pacht.ErrCancelRequested) {
			t.Errorf("cause: %v", cause)
		}
		becomes(t, s, id, pacht.Cancelled)
	})
}

// Steps are durable, fenced, and read by the next attempt; the output stands in the ledger.
func TestStepsAndOutputLast(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			step, ok, err := job.Step(ctx, "charged")
			if err != nil {
				return err
			}
			if !ok {
				if err := job.SetStep(ctx, "charged", map[string]int64{"receipt": 9007199254740993}); err != nil {
					return err
				}
				return pacht.RetryAfter(0, errors.New("crashed after the charge"))
			}
			return job.SetOutput(step.Data)
		})
		start(t, s, cfg)
		id := enqueue(t, s, 1)[0]
		becomes(t, s, id, pacht.Completed)
		got := ledger(t, s, id)
		if len(got) != 2 || string(got[1].Output) != `{"receipt":9007199254740993}` {
			t.Errorf("ledger: %+v", got)
		}
		steps, err := s.Steps(t.Context(), id)
		if err != nil || len(steps) != 1 || steps[0].Token != 1 || steps[0].Name != "charged" {
			t.Errorf("steps: %+v, %v", steps, err)
		}
	})
}

// R12, S084: args that do not decode fail the attempt with a clear error and are retried.
func TestArgsThatDoNotDecodeAreAFailure(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		for _, args := range []string{`{"n":"five"}`, `[1]`, `"text"`} {
			answers, err := s.Enqueue(t.Context(), []pacht.NewJob{{Kind: "task", Args: json.RawMessage(args)}})
			if err != nil || answers[0].Err != nil {
				t.Fatal(err, answers)
			}
			cfg := quick(1, func(context.Context, *pacht.Job[task]) error { t.Error("the handler ran"); return nil })
			cfg.Retry = pacht.Fixed(time.Hour)
			w, err := worker.New(s, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, ran, err := w.RunOne(t.Context()); err != nil || !ran {
				t.Fatal(ran, err)
			}
			got := ledger(t, s, answers[0].ID)
			if got[0].Outcome != pacht.OutcomeFailed || got[0].NextStatus != pacht.Pending || !strings.Contains(got[0].Error, "do not decode") {
				t.Errorf("%s: %+v", args, got)
			}
		}
	})
}

func TestMiddlewareWrapsInOrder(t *testing.T) {
	s := newDatabase(t, "sqlite").open(t)
	var order []string
	note := func(name string) worker.Middleware {
		return func(next worker.HandlerFunc) worker.HandlerFunc {
			return func(ctx context.Context, job *pacht.Held) error {
				order = append(order, name)
				return next(ctx, job)
			}
		}
	}
	cfg := quick(1, func(context.Context, *pacht.Job[task]) error { order = append(order, "handler"); return nil })
	cfg.Middleware = []worker.Middleware{note("outer"), note("inner")}
	w, err := worker.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, 1)
	if _, ran, err := w.RunOne(t.Context()); err != nil || !ran {
		t.Fatal(ran, err)
	}
	if want := []string{"outer", "inner", "handler"}; !slices.Equal(order, want) {
		t.Errorf("order %v", order)
	}
}

// S007: orders that make no sense are refused at start, naming field, value and bound.
func TestConfigurationsThatMakeNoSenseAreRefused(t *testing.T) {
	good := worker.HandleKind("a", worker.HandlerOptions{}, func(context.Context, *pacht.Held) error { return nil })
	cases := []struct {
		change func(*worker.Config)
		says   string
	}{
		{func(c *worker.Config) { c.Queues = nil }, "queues: want at least one"},
		{func(c *worker.Config) { c.Queues = map[string]int{"a": 0} }, "concurrency of queue a: 0 is not allowed, want 1 to 100000"},
		{func(c *worker.Config) { c.Queues = map[string]int{"a b": 1} }, `queue: "a b" is not allowed`},
		{func(c *worker.Config) { c.Handlers = nil }, "handlers: want at least one"},
		{func(c *worker.Config) { c.Handlers = []worker.Handler{good, good} }, `handlers: "a" is not allowed, want one handler for each kind`},
		{func(c *worker.Config) {
			c.Handlers = []worker.Handler{worker.HandleKind("b", worker.HandlerOptions{}, nil)}
		}, "handler of kind b: nil is not allowed, want a function"},
		{func(c *worker.Config) { c.Handlers = []worker.Handler{worker.Handle[task](nil)} }, "handler of kind task: nil is not allowed"},
		{func(c *worker.Config) {
			c.Handlers = []worker.Handler{worker.Handle(func(context.Context, *pacht.Job[pacht.Args]) error { return nil })}
		}, `kind: "" is not allowed`},
		{func(c *worker.Config) { c.Middleware = []worker.Middleware{nil} }, "middleware: nil is not allowed"},
		{func(c *worker.Config) {}, "store: nil is not allowed, want an open store"},
		{func(c *worker.Config) { c.Grace = -1 }, "grace: -1ns is not allowed"},
		{func(c *worker.Config) { c.Unwind = -1 }, "unwind: -1ns is not allowed"},
		{func(c *worker.Config) { c.TimeoutGrace = -1 }, "timeout grace: -1ns is not allowed"},
		{func(c *worker.Config) { c.Poll = time.Microsecond }, "poll: 1µs is not allowed, want 1ms to 1h"},
		{func(c *worker.Config) { c.NoSweep, c.Retention.Dead = true, time.Hour }, "retention: together with NoSweep is not allowed, want one of the two"},
		{func(c *worker.Config) { c.Watch.Period = 2 * time.Hour }, "watch period: 2h0m0s is not allowed"},
		{func(c *worker.Config) { c.Watch.Period, c.Watch.Poll = time.Second, time.Minute }, "watch poll: 1m0s is not allowed, want 10ms to the watch period, which is 1s"},
	}
	for _, c := range cases {
		cfg := worker.Config{Queues: map[string]int{"a": 1}, Handlers: []worker.Handler{good}}
		c.change(&cfg)
		if _, err := worker.New(nil, cfg); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want %q, got %v", c.says, err)
		}
	}
}

// Events never block: a listener that hangs costs events, counted, and no work.
func TestSlowListenerCostsNoWork(t *testing.T) {
	s := newDatabase(t, "sqlite").open(t)
	hang := make(chan struct{})
	var told, dropped atomic.Int64
	cfg := quick(100, func(context.Context, *pacht.Job[task]) error { return nil })
	cfg.OnEvent = func(ev worker.Event) {
		<-hang
		if ev.Type == worker.EventDropped {
			dropped.Add(int64(ev.Count))
			return
		}
		told.Add(1)
	}
	w, err := worker.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 2500 // two events each, more than the buffer
	enqueue(t, s, jobs)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	eventually(t, 30*time.Second, "all jobs are done while the listener hangs", func() bool {
		counts, err := s.Counts(t.Context())
		return err == nil && len(counts) == 0
	})
	cancel()
	close(hang)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if dropped.Load() == 0 || told.Load()+dropped.Load() != 2*jobs {
		t.Errorf("told %d, dropped %d, want %d in all", told.Load(), dropped.Load(), 2*jobs)
	}
}
