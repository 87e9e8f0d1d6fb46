// Package pachttest is for the tests of programs that use pacht: a held job without a
// database, one job run inline, a lease brought to its end, all times aged. Nothing in it
// sleeps.
package pachttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// Lease stands behind a held job in place of a worker: it keeps what the handler did, and
// the test says what becomes of the lease.
type Lease struct {
	mu        sync.Mutex
	job       pacht.JobInfo
	left      time.Duration
	lost      error
	output    json.RawMessage
	steps     []pacht.Step
	completed bool
	effects   map[string]bool // true: without an answer
}

// Hold makes a held job without a database: the first attempt, with the whole TTL left, and
// what the options say. It ends the test if the job would be refused.
func Hold[T pacht.Args](t testing.TB, args T, opts ...pacht.Option) (*pacht.Job[T], *Lease) {
	t.Helper()
	n := pacht.New(args, opts...)
	if err := n.Validate(pacht.Limits{}, n.RunAt); err != nil {
		t.Fatalf("hold a job: %v", err)
	}
	info := pacht.JobInfo{
		ID: 1, Kind: n.Kind, Args: n.Args, Metadata: n.Metadata,
		Queue: or(n.Queue, pacht.DefaultQueue), Priority: or(n.Priority, pacht.DefaultPriority),
		Status: pacht.Processing, Attempt: 1, Token: 1,
		MaxAttempts: or(n.MaxAttempts, pacht.DefaultMaxAttempts), MaxCrashes: or(n.MaxCrashes, pacht.DefaultMaxCrashes),
		TTL: or(n.TTL, pacht.DefaultTTL), CrashPolicy: or(n.CrashPolicy, pacht.DefaultCrashPolicy),
		LeaseOwner: "pachttest",
	}
	l := &Lease{job: info, left: info.TTL}
	return &pacht.Job[T]{Held: pacht.NewHeld(info, l), Args: args}, l
}

func or[V comparable](given, standard V) V {
	var zero V
	if given == zero {
		return standard
	}
	return given
}

// Lose makes the lease lost: from now on everything that is fenced answers ErrLeaseLost.
func (l *Lease) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.lost = 0, &pacht.LeaseLostError{Ref: l.job.Ref(), Status: pacht.Pending, Token: l.job.Token, Outcome: pacht.OutcomeExpired}
}

// SetRemaining says how much of the lease is left, as Job.Remaining reports it. Ensure sets it
// back to the TTL.
func (l *Lease) SetRemaining(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = d
}

// AddStep gives the job a step that an earlier attempt has reached.
func (l *Lease) AddStep(name string, data any) error {
	if err := pacht.ValidName("step", name); err != nil {
		return err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, pacht.Step{Token: l.job.Token - 1, Name: name, Data: raw})
	return nil
}

// Output is what the handler set last.
func (l *Lease) Output() json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.output
}

// Completed says whether CompleteTx has closed the lease.
func (l *Lease) Completed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.completed
}

// Remaining implements pacht.Keeper.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// Ensure implements pacht.Keeper.
func (l *Lease) Ensure(_ context.Context, _ time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.left = l.job.TTL
	}
	return l.lost
}

// SetOutput implements pacht.Keeper.
func (l *Lease) SetOutput(output json.RawMessage) error {
	if err := (pacht.Limits{}).ValidJSON("output", output); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.output = output
	return nil
}

// SetStep implements pacht.Keeper.
func (l *Lease) SetStep(_ context.Context, name string, data json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.steps = append(l.steps, pacht.Step{Token: l.job.Token, Name: name, Data: data})
	}
	return l.lost
}

// SetStepTx implements pacht.Keeper. With a Tx of a real store the step is written there, and
// refused, because the store knows of no such job: pass nil.
func (l *Lease) SetStepTx(ctx context.Context, tx pacht.Tx, name string, data json.RawMessage) error {
	if tx != nil {
		return errors.New("pachttest: this job is held without a database; its transaction must be nil")
	}
	return l.SetStep(ctx, name, data)
}

// Steps implements pacht.Keeper.
func (l *Lease) Steps(context.Context) ([]pacht.Step, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]pacht.Step(nil), l.steps...), nil
}

// CompleteTx implements pacht.Keeper. The Tx is not touched, and may be nil: the job is in no
// database. What the handler wrote with its own transaction is the test's to look at. As in
// a database, a lease is closed once: the second call gets ErrAlreadySettled.
func (l *Lease) CompleteTx(context.Context, pacht.Tx) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost
	case len(l.open()) > 0:
		return fmt.Errorf("complete %s: %w: %v", l.job.Ref(), pacht.ErrEffectOpen, l.open())
	case l.completed:
		return fmt.Errorf("complete %s: %w", l.job.Ref(), pacht.ErrAlreadySettled)
	}
	l.completed = true
	return nil
}

// EffectOpen implements pacht.Keeper.
func (l *Lease) EffectOpen(name string, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.effects == nil {
		l.effects = make(map[string]bool)
	}
	l.effects[name] = open
}

// OpenEffects names the effects that were called and have no answer.
func (l *Lease) OpenEffects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open()
}

func (l *Lease) open() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(l.effects)) {
		if l.effects[name] {
			names = append(names, name)
		}
	}
	return names
}

// Result is what became of a job that was run inline.
type Result struct {
	Job     pacht.JobInfo // as claimed
	Outcome pacht.Outcome
	Status  pacht.Status // what the job is now; "" if the outcome was refused
	Err     error        // why it was refused
}

// RunOne takes one due job of the queue for which there is a handler, runs it and stores its
// outcome, through the same code as a worker. It says false if none is due.
func RunOne(ctx context.Context, t testing.TB, store pacht.Store, queue string, handlers ...worker.Handler) (Result, bool) {
	t.Helper()
	w, err := worker.New(store, worker.Config{
		Queues: map[string]int{queue: 1}, Handlers: handlers, NoWatch: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("run one job: %v", err)
	}
	ev, ran, err := w.RunOne(ctx)
	if err != nil {
		t.Fatalf("run one job: %v", err)
	}
	return Result{Job: ev.Job, Outcome: ev.Outcome, Status: ev.Status, Err: ev.Err}, ran
}

// Ager is what both stores have for tests beside pacht.Store.
type Ager interface {
	pacht.Store
	// Age makes all that is stored older by d.
	Age(ctx context.Context, d time.Duration) error
}

// Age makes all that is stored older by d: leases come to their end, retries become due, keys
// and finished jobs get old. No time passes.
func Age(ctx context.Context, t testing.TB, store Ager, d time.Duration) {
	t.Helper()
	if err := store.Age(ctx, d); err != nil {
		t.Fatalf("age all times by %s: %v", d, err)
	}
}

// Expire brings the lease of one held job to its end and lets the Stuck Watcher pass: it
// answers what the job is then. All other times age with it.
func Expire(ctx context.Context, t testing.TB, store Ager, id pacht.ID) pacht.Status {
	t.Helper()
	job, err := store.Job(ctx, id)
	if err != nil {
		t.Fatalf("expire the lease of job %d: %v", id, err)
	}
	if job.Status != pacht.Processing {
		t.Fatalf("expire the lease of job %d: nobody holds it, it is %s", id, job.Status)
	}
	now, err := store.Now(ctx)
	if err != nil {
		t.Fatalf("expire the lease of job %d: %v", id, err)
	}
	Age(ctx, t, store, job.LeaseUntil.Sub(now)+10*time.Millisecond)
	req := pacht.ExpireRequest{By: "pachttest", Limit: pacht.MaxBatch, Period: time.Second, Force: true}
	for {
		pass, err := store.Expire(ctx, req)
		if err != nil {
			t.Fatalf("expire the lease of job %d: %v", id, err)
		}
		for _, e := range pass.Expired {
			if e.Ref.Job == id {
				return e.Next
			}
		}
		if pass.More == 0 {
			t.Fatalf("expire the lease of job %d: the watcher's pass did not close it", id)
		}
		req.After = pass.More
	}
}
