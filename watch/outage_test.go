package watch_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/watch"
)

// gone is a database that cannot be reached until a time. A call made while it is silent gets
// no answer at all.
type gone struct {
	until, silent time.Time
	passes        []time.Time
}

func (g *gone) answer(ctx context.Context) error {
	switch {
	case time.Now().Before(g.silent):
		<-ctx.Done()
		return ctx.Err()
	case time.Now().Before(g.until):
		return errors.New("injected: connection refused")
	}
	return nil
}

func (g *gone) Renew(ctx context.Context, _ []pacht.Ref) (pacht.Renewals, error) {
	return pacht.Renewals{Now: time.Now()}, g.answer(ctx)
}

func (g *gone) Expire(ctx context.Context, _ pacht.ExpireRequest) (pacht.Pass, error) {
	err := g.answer(ctx)
	if err == nil {
		g.passes = append(g.passes, time.Now())
	}
	return pacht.Pass{Turn: true, Now: time.Now()}, err
}

func (g *gone) watch(t *testing.T) {
	w, err := watch.New(g, watch.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := w.Run(ctx); err != nil || len(g.passes) == 0 {
		t.Fatalf("%d passes, %v", len(g.passes), err)
	}
}

// R7: holders have the whole time from when the database is back, whenever that is between
// two looks of the watcher.
func TestTheWaitAfterAnOutageCountsFromItsEnd(t *testing.T) {
	for back := 5 * time.Second; back < time.Minute; back += 5 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			g := &gone{until: time.Now().Add(back)}
			g.watch(t)
			if waited := g.passes[0].Sub(g.until); waited < 18*time.Second || waited > 26*time.Second { // two polls more, and jitter
				t.Errorf("back after %s: the first pass came %s later, want 20s", back, waited)
			}
		})
	}
}

// S042: a call that nobody answers, on a connection that nobody closes, ends by itself.
func TestSilenceDoesNotStopTheWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gone{silent: time.Now().Add(time.Second)}
		g.watch(t)
		if waited := g.passes[0].Sub(g.silent); waited > 2*time.Minute {
			t.Errorf("the first pass came %s after the silence", waited)
		}
	})
}
