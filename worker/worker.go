// Package worker runs jobs: it claims what it has room for, renews what it holds, and settles
// what its handlers answer.
//
//	claim loop ---> slots ---> handler ---> settle batcher ---> ledger
//	   (claim.go)   (queue.go)  (run.go)     (settle.go)
//	                  ^
//	             renewals and self-deposition (keep.go)
//
// One hold (hold.go) follows a lease from the claim to the answer of its settle. All loops
// end before Run returns.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
	"github.com/pacht-queue/pacht/sweep"
	"github.com/pacht-queue/pacht/watch"
)

// Worker runs jobs of some kinds from some queues. Made by New, run once by Run.
type Worker struct {
	store    pacht.Store
	cfg      Config
	owner    string
	log      *slog.Logger
	handlers map[string]Handler
	kinds    []string
	queues   []*queue
	holds    *holds
	settler  *settler
	asker    *settler // of jobs whose handlers called CompleteTx
	events   *events
	runners  runners
	trouble  *trouble
	wake     *waker
	watcher  *watch.Watcher // nil: somebody else watches
	sweeper  *sweep.Sweeper // nil: somebody else sweeps

	doubted atomic.Bool // renewals have failed, and it is being asked whether all do
	running atomic.Bool
	taking  context.Context    // ends when no job is to be started any more
	giveUp  context.CancelFunc // ends taking, and so Run, as the end of its context does
	base    context.Context    // for handlers and for calls to the store; outlives Run's context
	finish  context.CancelCauseFunc
	values  context.Context // what base carries, without its end
}

// New checks the configuration. It does not touch the database.
func New(store pacht.Store, cfg Config) (*Worker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := &Worker{
		store: store, cfg: cfg, owner: NewOwner(cfg.Name), log: cfg.Logger, kinds: cfg.kinds(),
		handlers: map[string]Handler{}, holds: newHolds(), events: newEvents(cfg.OnEvent),
	}
	for _, h := range cfg.Handlers {
		for _, m := range slices.Backward(cfg.Middleware) {
			h.fn = m(h.fn)
		}
		w.handlers[h.kind] = h
	}
	for _, name := range cfg.queues() {
		w.queues = append(w.queues, newQueue(name, cfg.Queues[name]))
	}
	w.trouble = newTrouble(w)
	w.settler, w.asker = newSettler(w), newSettler(w)
	w.wake = newWaker(w)
	w.runners.work = w.work
	if !cfg.NoWatch {
		if cfg.Watch.By == "" {
			cfg.Watch.By = w.owner
		}
		var err error
		if w.watcher, err = watch.New(store, cfg.Watch); err != nil {
			return nil, err
		}
	}
	if !cfg.NoSweep {
		var err error
		if w.sweeper, err = sweep.New(store, sweep.Config{Retention: cfg.Retention, By: w.owner, Logger: cfg.Logger}); err != nil {
			return nil, err
		}
	}
	if store == nil {
		return nil, &pacht.InvalidError{Field: "store", Value: "nil", Bound: "an open store"}
	}
	return w, nil
}

// Owner is the name under which this worker holds leases. It is never reused.
func (w *Worker) Owner() string { return w.owner }

// Run works until ctx ends, stops in order, and returns when all that it started has ended:
// nil, or *UnfinishedError naming the jobs whose handlers did not return or whose outcome
// could not be stored. It returns at once if the schema does not fit, and stops if the store is
// closed under it (pacht.ErrClosed). A database that cannot be reached is waited for.
//
// The stop: no more claims; what was leased but not started is released; handlers run on,
// renewed, for Config.Grace; then they are cancelled with pacht.ErrStopping and have
// Config.Unwind to return; what they answer is settled; the rest is left to expire.
func (w *Worker) Run(ctx context.Context) error {
	ctx, end, err := w.start(ctx)
	defer end()
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}

	var takers sync.WaitGroup // end with ctx
	if w.watcher != nil {
		takers.Go(func() {
			if err := w.watcher.Run(ctx); err != nil {
				w.trouble.met(callWatch, err)
			}
		})
	}
	if w.sweeper != nil {
		takers.Go(func() {
			if err := w.sweeper.Run(ctx); err != nil {
				w.trouble.met(callSweep, err)
			}
		})
	}
	for _, q := range w.queues {
		takers.Go(func() { w.claimLoop(ctx, q) })
	}
	var waker sync.WaitGroup // ends with ctx too, and no grace waits for it
	waker.Go(func() { w.wake.run(ctx) })

	takers.Wait()
	failpoint.Here("worker.stop.drains")
	if w.trouble.fatal() == nil { // nothing that handlers still do could be stored
		w.drain(w.cfg.Grace)
	}
	failpoint.Here("worker.stop.cancels")
	for _, h := range w.holds.list() {
		h.stop(pacht.ErrStopping)
	}
	w.drain(w.cfg.Unwind)
	waker.Wait()
	return errors.Join(w.trouble.fatal(), w.unfinished())
}

// RunOne takes one due job of any of the worker's queues, runs it and stores its outcome, all
// before it returns: for tests, and for programs that are started for one job each. It says
// false if no job was due. The event is the one that Run would have told of: EventSettled or
// EventRefused. Like Run, it may be called once.
func (w *Worker) RunOne(ctx context.Context) (Event, bool, error) {
	var last Event
	told := w.events.fn
	w.events.fn = func(ev Event) {
		if ev.Type == EventSettled || ev.Type == EventRefused {
			last = ev
		}
		if told != nil {
			told(ev)
		}
	}
	taken, err := w.runOne(ctx)
	return last, taken > 0 || last.Type != "", err // an adopted job may have ended before it was counted
}

func (w *Worker) runOne(ctx context.Context) (taken int, err error) {
	ctx, end, err := w.start(ctx)
	defer end()
	for i := 0; i < len(w.queues) && taken == 0 && err == nil; i++ {
		if taken, err = w.claim(ctx, w.queues[i], 1, nil); errors.Is(err, pacht.ErrUnknown) {
			err = w.adopt(ctx, w.queues[i])
			taken = len(w.holds.list())
		}
	}
	if err != nil {
		return 0, err
	}
	select {
	case <-w.holds.drained():
		return taken, nil
	case <-ctx.Done():
	}
	for _, h := range w.holds.list() {
		h.stop(pacht.ErrStopping)
	}
	w.drain(w.cfg.Unwind)
	return taken, w.unfinished()
}

// start checks the schema and starts the loops that keep leases and store outcomes. The end
// function must be called in any case; it waits for all of them.
func (w *Worker) start(ctx context.Context) (run context.Context, end func(), err error) {
	if w.running.Swap(true) {
		return ctx, func() {}, errors.New("worker: it ran before; make a new Worker for another run")
	}
	w.taking, w.giveUp = context.WithCancel(ctx)
	run = w.taking
	// Handlers and results outlive the signal to stop (S032); values of ctx are kept.
	w.values = context.WithoutCancel(ctx)
	w.base, w.finish = context.WithCancelCause(w.values)
	var telling, keepers sync.WaitGroup
	telling.Go(w.events.run)
	end = func() {
		w.finish(pacht.ErrStopping)
		keepers.Wait()
		w.runners.close()
		w.events.close()
		telling.Wait()
		w.giveUp()
	}
	if err := w.awaitSchema(run); err != nil {
		return run, end, err
	}
	// The first renewal must not have to wait for its connection: it is opened before any claim.
	w.renew([]pacht.Ref{{}}, nil, callTimeout)
	keepers.Go(w.renewLoop)
	keepers.Go(w.deposeLoop)
	keepers.Go(w.settler.run)
	keepers.Go(w.asker.run)
	keepers.Go(w.beatLoop)
	return run, end, nil
}

// errStopped: ctx ended before the database answered. Nothing was begun, so nothing is left.
var errStopped = errors.New("worker stopped before the database answered")

// awaitSchema returns nil when the schema fits, an error if it does not or ctx ended before
// the database answered.
func (w *Worker) awaitSchema(ctx context.Context) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		found, wanted, err := w.store.Schema(call)
		cancel()
		switch {
		case err == nil && found == wanted:
			w.trouble.over(callSchema)
			return nil
		case err == nil:
			return &pacht.SchemaError{Found: found, Wanted: wanted}
		case errors.Is(err, pacht.ErrClosed):
			return fmt.Errorf("worker: %w", err)
		case ctx.Err() != nil:
			return errStopped
		}
		w.trouble.met(callSchema, err)
		_ = clock.Sleep(ctx, clock.Jitter(wait)) // the end of ctx shows in the next round
	}
}

// drain waits until nothing is held, at most d.
func (w *Worker) drain(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.holds.drained():
	case <-t.C:
	}
}

func (w *Worker) unfinished() error {
	var left []Unfinished
	for _, h := range w.holds.list() {
		h.mu.Lock()
		left = append(left, Unfinished{Ref: h.job.Ref(), Kind: h.job.Kind, LeaseUntil: h.until, Returned: h.returned})
		h.mu.Unlock()
	}
	if len(left) == 0 {
		return nil
	}
	slices.SortFunc(left, func(a, b Unfinished) int { return int(a.Ref.Job - b.Ref.Job) })
	return &UnfinishedError{Jobs: left}
}

// slots is how many jobs may run at once in all queues.
func (w *Worker) slots() int {
	n := 0
	for _, q := range w.queues {
		n += q.size
	}
	return n
}

// Status is what a worker is doing, for health checks and people.
type Status struct {
	Held   int // leases held
	Wedged int // of them: handlers that ignore their cancelled context
	// Listening says that notices arrive, so that an idle queue is asked at a job's commit. If
	// not, jobs are found by polling.
	Listening bool
	// Unreachable is why the database cannot be reached; nil while it can. Errors counts the
	// failed calls since the start.
	Unreachable error
	Errors      int64
}

// Status may be asked at any time.
func (w *Worker) Status() Status {
	s := Status{Listening: w.wake.listens()}
	s.Errors, s.Unreachable = w.trouble.state()
	for _, h := range w.holds.list() {
		s.Held++
		h.mu.Lock()
		if h.wedged {
			s.Wedged++
		}
		h.mu.Unlock()
	}
	return s
}
