package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// S010: handlers that hold every connection of the pool, and others that wait for one, starve
// neither renewals nor results.
func TestHandlersThatHoldThePoolStarveNothing(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	cfg, err := pgxpool.ParseConfig(db.url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids := enqueue(t, s, 4, pacht.TTL(2*time.Second))
	w := start(t, s, quick(4, func(ctx context.Context, job *pacht.Job[task]) error {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		for range 20 { // more who want one
			go func() {
				if c, err := pool.Acquire(ctx); err == nil {
					c.Release()
				}
			}()
		}
		select {
		case <-time.After(5 * time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}))
	watch := db.open(t)
	for _, id := range ids {
		becomes(t, watch, id, pacht.Completed)
		if got := ledger(t, watch, id); len(got) != 1 || got[0].Late {
			t.Errorf("job %d: %+v", id, got)
		}
	}
	if n := w.seen.count(worker.EventLost); n != 0 {
		t.Errorf("%d leases lost", n)
	}
}

// S022, S038, R7: the server goes away right after the handler returned. What it answered is
// offered until the server is back. An outage shorter than the TTL costs nothing at all, and
// after a longer one the late outcome still counts, because the watcher lets holders settle
// first. No loop needs a restart.
func TestOutcomesOutliveAnOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	url := server.Database(t)
	open := func() store {
		s, err := postgres.Open(t.Context(), url, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open()
	if _, err := s.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		ttl  time.Duration
		out  time.Duration
		late bool
	}{
		{"shorter than the TTL", time.Minute, 500 * time.Millisecond, false},
		{"longer than the TTL", time.Second, 2 * time.Second, true},
	} {
		var runs atomic.Int32
		begun, finish := make(chan struct{}), make(chan struct{})
		cfg := quick(1, func(context.Context, *pacht.Job[task]) error {
			if runs.Add(1) == 1 {
				close(begun)
				<-finish
			}
			return nil
		})
		cfg.Watch = watch.Config{Period: 30 * time.Second}
		w := start(t, open(), cfg)
		id := enqueue(t, s, 1, pacht.TTL(c.ttl))[0]
		<-begun
		server.Stop(t)
		close(finish)
		eventually(t, 20*time.Second, c.name+": the worker meets the outage", func() bool { return w.Status().Unreachable != nil })
		time.Sleep(c.out) // the outage itself
		server.Start(t)
		eventually(t, 30*time.Second, c.name+": the outcome is stored", func() bool {
			j, err := s.Job(t.Context(), id)
			return err == nil && j.Status == pacht.Completed
		})
		if got := ledger(t, s, id); len(got) != 1 || got[0].Late != c.late || runs.Load() != 1 {
			t.Errorf("%s: %d runs, ledger %+v", c.name, runs.Load(), got)
		}
		next := enqueue(t, s, 1)[0]
		becomes(t, s, next, pacht.Completed)
		eventually(t, 20*time.Second, c.name+": healthy again", func() bool { return w.Status().Unreachable == nil })
		if err := w.end(); err != nil {
			t.Error(err)
		}
	}
	checked(t, s)
}
