package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// ear is one call of Listen.
type ear struct {
	works chan error // nil: it works
	woken chan string
}

func listen(t *testing.T, s *Store) *ear {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	e := &ear{works: make(chan error, 1000), woken: make(chan string, 1000)}
	done := make(chan error)
	go func() {
		done <- s.Listen(ctx, "owner", pacht.Listener{
			Works: func(works bool, why error) {
				if works == (why != nil) {
					t.Errorf("works %v, because %v", works, why)
				}
				e.works <- why
			},
			Wake: func(queue string) { e.woken <- queue },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, pacht.ErrClosed) {
			t.Errorf("listen: %v", err)
		}
	})
	return e
}

// state is what Listen says next: nil = it works.
func (e *ear) state(t *testing.T) error {
	t.Helper()
	select {
	case why := <-e.works:
		return why
	case <-time.After(30 * time.Second):
		t.Fatal("Listen says nothing")
		return nil
	}
}

// working waits until notices arrive.
func (e *ear) working(t *testing.T) *ear {
	t.Helper()
	for e.state(t) != nil {
	}
	return e
}

// hears asserts which queue is told of next.
func (e *ear) hears(t *testing.T, queue string) {
	t.Helper()
	select {
	case got := <-e.woken:
		if got != queue {
			t.Errorf("told of queue %s, want %s", got, queue)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("not told of queue %s", queue)
	}
}

func sleep(t *testing.T, s *Store, owner string, queues ...string) {
	t.Helper()
	if err := s.Sleep(t.Context(), owner, queues, time.Minute); err != nil {
		t.Fatal(err)
	}
}

// Notices come in the order of commits: what is heard first went out first, so that nothing
// went out before it.
func TestNoticesComeAfterTheCommitAndOnlyWhereSomebodySleeps(t *testing.T) {
	s, pool := newStore(t)
	e := listen(t, s).working(t)
	enqueue(t, s, 1, pacht.Queue("awake"))
	sleep(t, s, "owner", "a", "b", "c")
	if err := s.Rise(t.Context(), "owner", []string{"b"}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, 1, pacht.Queue("b"))
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tx(tx).EnqueueTx(t.Context(), []pacht.NewJob{pacht.New(charge{1}, pacht.Queue("c"))}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, 3, pacht.Queue("a"))
	e.hears(t, "a")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.hears(t, "c")

	execute(t, pool, `SELECT pacht.enqueue('charge', '{}', 'a', run_at => now() + interval '1 hour'), pacht.enqueue('charge', '{}', 'b')`)
	execute(t, pool, `BEGIN; SELECT pacht.enqueue('charge', '{}', 'a'); ROLLBACK`)
	execute(t, pool, `SELECT pacht.enqueue('charge', '{}', 'c'), pacht.enqueue('charge', '{}', 'c', run_at => now() - interval '1 hour')`)
	e.hears(t, "c")

	sleep(t, s, "another", "c")
	if err := s.Leave(t.Context(), "owner"); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, 1, pacht.Queue("a"))
	enqueue(t, s, 1, pacht.Queue("c"))
	e.hears(t, "c") // the other one is there
	if left := value(t, pool, "SELECT string_agg(owner || ' ' || queue, ', ') FROM pacht.sleepers"); left != "another c" {
		t.Errorf("sleepers after the sign-off: %s", left)
	}
	if len(e.woken) > 0 {
		t.Errorf("told of %s too", <-e.woken)
	}
}

// A worker that was killed leaves its row behind.
func TestSleepersThatWereKilledAreForgotten(t *testing.T) {
	s, pool := newStore(t)
	e := listen(t, s).working(t)
	sleep(t, s, "killed", "a", "b")
	if err := s.Age(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	sleep(t, s, "owner", "b")
	enqueue(t, s, 1, pacht.Queue("a"))
	enqueue(t, s, 1, pacht.Queue("b"))
	e.hears(t, "b")
	const rows = "SELECT count(*) FROM pacht.sleepers"
	if n := value(t, pool, rows); n != "3" { // it may only have been cut off
		t.Errorf("%s rows of sleepers", n)
	}
	if err := s.Age(t.Context(), 15*time.Minute); err != nil {
		t.Fatal(err)
	}
	sleep(t, s, "owner", "b")
	if n := value(t, pool, rows); n != "1" {
		t.Errorf("%s rows of sleepers a quarter of an hour later", n)
	}
	execute(t, pool, `INSERT INTO pacht.sleepers SELECT 'q' || n, 'killed', 'x', now() - interval '1 hour' FROM generate_series(1, 250) AS n`)
	sleep(t, s, "owner", "b")
	if n := value(t, pool, rows); n != "151" { // bounded
		t.Errorf("%s rows are left of 251, want 151", n)
	}
}

func TestSchemasInOneDatabaseWakeEachOtherNot(t *testing.T) {
	url := pgtest.Database(t)
	long := fmt.Sprintf("%063d", 1)
	one, _ := storeAt(t, url, Config{Schema: long})
	other, _ := storeAt(t, url, Config{Schema: long[:62] + "2"})
	for _, s := range []*Store{one, other} {
		sleep(t, s, "owner", "a", "b")
	}
	e := listen(t, one).working(t)
	enqueue(t, other, 1, pacht.Queue("a"))
	enqueue(t, one, 1, pacht.Queue("b"))
	e.hears(t, "b")
}

// S047
func TestListeningBehindAPoolerInTransactionModeIsFoundOut(t *testing.T) {
	database := pgtest.Database(t)
	s, _ := storeAt(t, pgtest.Bouncer(t, database), Config{})
	e := listen(t, s)
	for range 2 {
		if why := e.state(t); !errors.Is(why, errSilent) {
			t.Fatalf("Listen says %v", why)
		}
	}
	pooled, _ := storeAt(t, pgtest.Bouncer(t, database, "pool_mode = session", "default_pool_size = 20"), Config{})
	e = listen(t, pooled).working(t)
	sleep(t, pooled, "owner", "a")
	enqueue(t, pooled, 1, pacht.Queue("a"))
	e.hears(t, "a")
}

// S039
func TestListeningComesBackAfterItsConnectionBroke(t *testing.T) {
	s, pool := storeAt(t, pgtest.Database(t), Config{})
	e := listen(t, s).working(t)
	sleep(t, s, "owner", "a")
	for range 2 {
		execute(t, pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
		if why := e.state(t); why == nil {
			t.Fatal("it says that it works, and does not say that it ever ceased to")
		}
		e.working(t)
		enqueue(t, s, 1, pacht.Queue("a"))
		e.hears(t, "a")
	}
}

// S041: a connection on which nothing comes any more looks like one on which nothing happens.
func TestListeningOnAConnectionThatWentSilentIsFoundOut(t *testing.T) {
	database := pgtest.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	proxy := netfault.New(t, u.Host)
	u.Host = proxy.Addr()
	s, _ := storeAt(t, u.String(), Config{})
	s.listens.every, s.listens.sent = 50*time.Millisecond, time.Second
	e := listen(t, s).working(t)
	proxy.Blackhole(true)
	if why := e.state(t); why == nil {
		t.Fatal("it works over a dead connection")
	}
	proxy.Blackhole(false)
	e.working(t)
}

// The caller's own handler of notices must not swallow those of the store.
func TestListeningNeedsNothingOfTheCallersPool(t *testing.T) {
	s, _ := storeAt(t, pgtest.Database(t), Config{}, mode(pgx.QueryExecModeExec), func(cfg *pgxpool.Config) {
		cfg.MaxConns = 1
		cfg.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	})
	e := listen(t, s).working(t)
	sleep(t, s, "owner", "a")
	enqueue(t, s, 1, pacht.Queue("a"))
	e.hears(t, "a")
}

// S040: attempts to connect that fail are not the last.
func TestListeningComesBackAfterARestartOfTheServer(t *testing.T) {
	server := pgtest.NewServer(t)
	s, _ := storeAt(t, server.Database(t), Config{})
	e := listen(t, s).working(t)
	server.Stop(t)
	for range 4 {
		if why := e.state(t); why == nil {
			t.Fatal("it works on a server that is stopped")
		}
	}
	server.Start(t)
	e.working(t)
	sleep(t, s, "owner", "a")
	enqueue(t, s, 1, pacht.Queue("a"))
	e.hears(t, "a")
}
