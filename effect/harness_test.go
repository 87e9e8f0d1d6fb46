package effect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/pachttest"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/worker"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// store is a store as these tests need it.
type store interface {
	pachttest.Ager
	pacht.Migrator
}

// receipt is what the provider answers.
type receipt struct {
	ID   string `json:"id"`
	Odd  *odd   `json:"odd,omitempty"`
	Note string `json:"note,omitempty"`
}

// odd does not encode.
type odd struct{}

func (odd) MarshalJSON() ([]byte, error) { return nil, errors.New("odd") }

// payment is the job of these tests.
type payment struct {
	N int `json:"n"`
}

func (payment) Kind() string { return "payment" }

// world is a store, a provider behind HTTP, and an effect that charges there.
type world struct {
	*testing.T
	store   store
	psp     *provider
	effects *effect.Effects
	charge  *effect.Effect[receipt]
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, kind))
		})
	}
}

const (
	keyLife     = 24 * time.Hour
	consistency = 2 * time.Minute
)

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	w := &world{T: t, psp: newProvider(t)}
	var err error
	if kind == "postgres" {
		w.store, err = postgres.Open(t.Context(), pgtest.Database(t), postgres.Config{})
	} else {
		w.store, err = sqlite.Open(filepath.Join(t.TempDir(), "test.db"), sqlite.Config{})
	}
	w.must(err)
	t.Cleanup(func() {
		if err := w.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	_, err = w.store.MigrateUp(t.Context())
	w.must(err)
	w.define(w.store, effect.Spec[receipt]{KeyLife: keyLife, Consistency: consistency, Probe: w.psp.probe})
	return w
}

// define makes the effect anew, in a program of its own.
func (w *world) define(log pacht.EffectLog, spec effect.Spec[receipt]) {
	w.Helper()
	var err error
	w.effects = effect.New(log)
	w.charge, err = effect.Define(w.effects, "charge", spec)
	w.must(err)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) enqueue(opts ...pacht.Option) pacht.ID {
	w.Helper()
	got, err := pacht.NewClient(w.store).Enqueue(w.Context(), payment{N: 7}, append([]pacht.Option{pacht.TTL(time.Hour)}, opts...)...)
	w.must(err)
	return got.ID
}

// handler is one by which most of these jobs are run.
type handler = func(ctx context.Context, job *pacht.Job[payment]) error

// pay charges and is done.
func (w *world) pay(ctx context.Context, job *pacht.Job[payment]) error {
	_, err := w.charge.Do(ctx, job, w.psp.charge)
	return err
}

// run runs the one due job through the code of a worker.
func (w *world) run(fn handler) pachttest.Result {
	w.Helper()
	got, ran := pachttest.RunOne(w.Context(), w, w.store, pacht.DefaultQueue, worker.HandleWith(worker.HandlerOptions{Retry: pacht.Fixed(0)}, fn))
	if !ran {
		w.Fatal("no job was due")
	}
	w.must(got.Err)
	return got
}

// start runs a worker until the test ends, or stops it.
func (w *world) start(fn handler) (stop func() error) {
	w.Helper()
	run, err := worker.New(w.store, worker.Config{
		Queues: map[string]int{pacht.DefaultQueue: 2}, Handlers: []worker.Handler{worker.Handle(fn)},
		Poll: 10 * time.Millisecond, Grace: time.Millisecond, NoWatch: true, NoSweep: true, Logger: slog.New(slog.DiscardHandler),
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = run.Run(ctx)
	}()
	stop = func() error {
		cancel()
		<-done
		return err
	}
	w.Cleanup(func() { _ = stop() })
	return stop
}

func (w *world) retry(id pacht.ID) {
	w.Helper()
	w.must(w.store.Retry(w.Context(), id, pacht.Act{By: "op", Reason: "test"}))
}

func (w *world) status(id pacht.ID) pacht.Status {
	w.Helper()
	j, err := w.store.Job(w.Context(), id)
	w.must(err)
	return j.Status
}

// effect is the job's only one.
func (w *world) effect(id pacht.ID) pacht.Effect {
	w.Helper()
	list, err := w.store.Effects(context.WithoutCancel(w.Context()), id)
	w.must(err)
	if len(list) != 1 {
		w.Fatalf("effects %+v", list)
	}
	return list[0]
}

// is asserts how job and effect stand, and what the provider has seen.
func (w *world) is(id pacht.ID, status pacht.Status, state pacht.EffectState, calls, charges int) {
	w.Helper()
	got := fmt.Sprint(w.status(id), " ", w.effect(id).State, " ", w.psp.calls.get(), " ", w.psp.charged())
	if want := fmt.Sprint(status, " ", state, " ", calls, " ", charges); got != want {
		w.Errorf("job, effect, calls, charges:\n got  %s\n want %s\n %+v", got, want, w.effect(id))
	}
	w.checked()
}

func (w *world) checked() {
	w.Helper()
	bad, err := w.store.Check(w.Context())
	w.must(err)
	for _, v := range bad {
		w.Errorf("check: %+v", v)
	}
}

func (w *world) age(d time.Duration) {
	w.Helper()
	pachttest.Age(w.Context(), w, w.store, d)
}

func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatal("not in time: " + what)
		}
	}
}

// counter may be read while it grows.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
