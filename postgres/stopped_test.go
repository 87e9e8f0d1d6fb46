package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// S045, S061: whoever stops between two round trips of a transaction of the store's own keeps its
// locks for a bounded time. Each road that has more than one is seen to be bounded, by the rows
// that it writes.
func TestEveryTransactionOfSeveralRoundTripsIsBounded(t *testing.T) {
	s, pool := newStore(t)
	execute(t, pool, `CREATE TABLE seen (idle text);
		CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (current_setting('idle_in_transaction_session_timeout')); RETURN NULL; END $$;
		CREATE TRIGGER see AFTER INSERT OR DELETE ON pacht.jobs FOR EACH STATEMENT EXECUTE FUNCTION see();
		CREATE TRIGGER see AFTER INSERT OR UPDATE ON pacht.leases FOR EACH STATEMENT EXECUTE FUNCTION see()`)
	serial := func(fn func() error) error {
		s.unprepared.Store(true)
		defer s.unprepared.Store(false)
		return fn()
	}
	var jobs []pacht.JobInfo
	for _, road := range []struct {
		name string
		take func() error
	}{
		{"COPY", func() error { enqueue(t, s, copyLeast); return nil }},
		{"keys", func() error {
			_, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{1}, pacht.IdempotencyKey("a")), pacht.New(charge{2})})
			return err
		}},
		{"an enqueue one by one", func() error { return serial(func() error { enqueue(t, s, 1); return nil }) }},
		{"a claim in turn", func() error { jobs = claim(t, s, gateFrom); return nil }},
		{"an act by hand one by one", func() error {
			return serial(func() error { _, err := s.Release(t.Context(), jobs[0].Ref(), byHand); return err })
		}},
		{"prune", func() error {
			complete(t, s, jobs[1:10])
			execute(t, pool, "DELETE FROM seen")
			n, err := s.Prune(t.Context(), pacht.PruneRequest{Status: pacht.Completed, Limit: 9})
			if n != 9 {
				t.Errorf("pruned %d", n)
			}
			return err
		}},
		{"sweep", func() error {
			complete(t, s, jobs[10:20])
			execute(t, pool, "DELETE FROM seen")
			_, err := s.Sweep(t.Context(), pacht.SweepRequest{By: "s", Target: pacht.SweepCompleted, Limit: 100, Period: time.Second, Force: true})
			return err
		}},
	} {
		execute(t, pool, "DELETE FROM seen")
		if err := road.take(); err != nil {
			t.Errorf("%s: %v", road.name, err)
		}
		if got := value(t, pool, "SELECT coalesce(string_agg(DISTINCT idle, ' '), 'nothing was written') FROM seen"); got != "10s" {
			t.Errorf("%s: a client that stops is waited for: %s", road.name, got)
		}
	}
}

func TestStricterBoundOfTheSessionStays(t *testing.T) {
	s, pool := storeAt(t, setting(t, pgtest.Database(t), "idle_in_transaction_session_timeout=700ms"), Config{})
	var idle string
	_, err := s.interactive(t.Context(), pool, lockTimeout, false, func(on session) error {
		return on.query(t.Context(), "SELECT current_setting('idle_in_transaction_session_timeout')", nil, func(scan scanner) error { return scan(&idle) })
	})
	if err != nil || idle != "700ms" {
		t.Errorf("%q, %v", idle, err)
	}
}

// S045: an enqueue of the same keys goes through although the first one stands still before its
// COMMIT, which comes too late then; likewise a migration, and the textbook's view.
func TestWhoStopsBeforeItsCommitKeepsNobodyWaitingForLong(t *testing.T) {
	url := pgtest.Database(t)
	s, pool := storeAt(t, url, Config{StatementTimeout: 2 * time.Second}) // a second of idling
	jobs := []pacht.NewJob{pacht.New(charge{1}, pacht.IdempotencyKey("a")), pacht.New(charge{2}, pacht.IdempotencyKey("b"))}
	stopped := stop(t, func(standStill func()) error {
		_, err := s.interactive(t.Context(), s.pool, s.timeout, false, func(on session) error {
			e := enqueuer{of: s, on: on, jobs: jobs, answers: make([]pacht.Enqueued, 2)}
			err := e.store(t.Context(), []int{0, 1})
			standStill()
			return err
		})
		return err
	})
	answers, err := s.Enqueue(t.Context(), jobs)
	if err != nil || answers[0].Duplicate || answers[1].Duplicate || answers[0].Err != nil {
		t.Errorf("enqueued %+v, %v", answers, err)
	}
	stopped("enqueue")

	stopped = stop(t, func(standStill func()) error {
		return s.textbook(t.Context(), "install", func(pgx.Tx) error { standStill(); return nil })
	})
	if err := s.InstallTextbook(t.Context()); err != nil {
		t.Error(err)
	}
	stopped("textbook")

	fresh, err := New(poolAt(t, url), Config{Schema: "fresh", StatementTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	stopped = stop(t, func(standStill func()) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := fresh.migrateOne(t.Context(), pgxSession{on: tx, mode: pgx.QueryExecModeSimpleProtocol})
			standStill()
			return err
		})
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if done, err := fresh.MigrateUp(ctx); err != nil || len(done) != len(fresh.steps) {
		t.Errorf("migrated %d, %v", len(done), err)
	}
	stopped("migrate")
}

// stop runs what stands still until the function that it answers is called, which fails the test
// if that has come to anything.
func stop(t *testing.T, run func(standStill func()) error) (goOn func(what string)) {
	t.Helper()
	stands, thaw, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- run(func() {
			select {
			case <-stands: // tried again: no more
			default:
				close(stands)
				<-thaw
			}
		})
	}()
	select {
	case <-stands:
	case err := <-ended:
		t.Fatalf("it did not stand still: %v", err)
	}
	return func(what string) {
		t.Helper()
		close(thaw)
		if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: whoever stood still was answered %v", what, err)
		}
	}
}
