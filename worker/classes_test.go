package worker_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// distant is a store whose renewals take as long as a link to another continent.
type distant struct {
	store
	takes time.Duration
	dead  atomic.Bool // none is answered any more
	mu    sync.Mutex
	lost  map[pacht.ID]int // renewals that got no answer in time
	won   map[pacht.ID]int
}

func (d *distant) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	answer, err := pacht.Renewals{}, error(nil)
	takes := d.takes
	if d.dead.Load() {
		takes = time.Hour
	}
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(takes):
		answer, err = d.store.Renew(ctx, refs)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ref := range refs {
		if err != nil {
			d.lost[ref.Job]++
		} else {
			d.won[ref.Job]++
		}
	}
	return answer, err
}

func (d *distant) renewals(id pacht.ID) (won, lost int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.won[id], d.lost[id]
}

// complaints are the calls that a worker's log complains of.
type complaints struct {
	slog.Handler
	mu    sync.Mutex
	calls []string
	over  bool // it listens no more
}

func (c *complaints) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

func (c *complaints) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "call" && r.Level == slog.LevelError {
			c.mu.Lock()
			defer c.mu.Unlock()
			if !c.over {
				c.calls = append(c.calls, a.Value.String())
			}
		}
		return true
	})
	return nil
}

func (c *complaints) Enabled(context.Context, slog.Level) bool { return true }

// R12, S012: leases that are too short for a link are lost on it, again and again. The others are
// renewed in calls of their own, none of which fails, and no claim is held back.
func TestShortLeasesThatCannotBeRenewedFailNoOthers(t *testing.T) {
	t.Parallel()
	s := &distant{store: newDatabase(t, "sqlite").open(t), takes: 120 * time.Millisecond, lost: map[pacht.ID]int{}, won: map[pacht.ID]int{}}
	var short []pacht.ID
	log := &complaints{Handler: slog.DiscardHandler}
	cfg := quick(4, func(ctx context.Context, job *pacht.Job[task]) error {
		if job.Args.Do == "short" {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		select {
		case <-time.After(3 * time.Second):
			log.end() // with short leases alone all renewals fail
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	cfg.Logger = slog.New(log)
	long := enqueue(t, s, 2, pacht.TTL(2*time.Second))
	answers, err := s.Enqueue(t.Context(), []pacht.NewJob{
		pacht.New(task{Do: "short"}, pacht.TTL(100*time.Millisecond), pacht.MaxCrashes(1000), pacht.MaxAttempts(1000)),
		pacht.New(task{Do: "short", N: 1}, pacht.TTL(100*time.Millisecond), pacht.MaxCrashes(1000), pacht.MaxAttempts(1000)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		short = append(short, a.ID)
	}
	start(t, s, cfg)
	for _, id := range long {
		becomes(t, s, id, pacht.Completed)
		if won, lost := s.renewals(id); won < 3 || lost > 0 {
			t.Errorf("long job %d: %d renewals, %d lost with those of others", id, won, lost)
		}
		if got := ledger(t, s, id); len(got) != 1 {
			t.Errorf("long job %d: %+v", id, got)
		}
	}
	for _, id := range short {
		if won, lost := s.renewals(id); won > 0 || lost < 3 {
			t.Errorf("short job %d: %d renewals, %d lost: nothing was tried", id, won, lost)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if slices.Contains(log.calls, "renew") || !strings.Contains(strings.Join(log.calls, " "), "short") {
		t.Errorf("the log complains of %q", log.calls)
	}
}

// S012: where nothing can be renewed at all, a long lease whose turn has not come does not hide it, and
// nothing more is claimed.
func TestLongLeaseHidesNoDeadRenewals(t *testing.T) {
	t.Parallel()
	s := &distant{store: newDatabase(t, "sqlite").open(t), lost: map[pacht.ID]int{}, won: map[pacht.ID]int{}}
	log := &complaints{Handler: slog.DiscardHandler}
	var begun atomic.Int32
	cfg := quick(2, func(ctx context.Context, job *pacht.Job[task]) error {
		if begun.Add(1) == 2 {
			s.dead.Store(true)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	cfg.Logger, cfg.Grace = slog.New(log), 10*time.Millisecond
	answers, err := s.Enqueue(t.Context(), []pacht.NewJob{
		pacht.New(task{}, pacht.TTL(time.Hour)), pacht.New(task{N: 1}, pacht.TTL(1500*time.Millisecond)),
	})
	if err != nil {
		t.Fatal(err)
	}
	start(t, s, cfg)
	eventually(t, 20*time.Second, "the worker says that renewals fail", func() bool { return slices.Contains(log.said(), "renew") })
	if said := log.said(); slices.Contains(said, "renew short leases") {
		t.Errorf("the log complains of %q", said)
	}
	becomes(t, s, answers[1].ID, pacht.Pending)
	if again := ledger(t, s, answers[1].ID); len(again) != 1 {
		t.Errorf("claimed again, although it could not be kept: %+v", again)
	}
}
