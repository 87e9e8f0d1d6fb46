package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/worker"
)

// never is a poll that finds nothing in these tests: what is found was told of, or found by the
// fast polls.
const never = time.Hour

// lazy is a configuration with one queue that is polled as rarely as that.
func lazy(slots int, poll time.Duration, fn func(context.Context, *pacht.Job[task]) error) worker.Config {
	cfg := quick(slots, fn)
	cfg.Poll = poll
	cfg.NoWatch = true
	return cfg
}

func nothing(context.Context, *pacht.Job[task]) error { return nil }

// sleepers is a pool beside the store's, and how many rows of sleepers there are.
func sleepers(t *testing.T, url string) (*pgxpool.Pool, func() int) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, func() int {
		var n int
		if err := pool.QueryRow(context.Background(), "SELECT count(*) FROM pacht.sleepers").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// asleep waits until the worker has lain down on so many queues.
func asleep(t *testing.T, w *running, rows func() int, want int) {
	t.Helper()
	eventually(t, 30*time.Second, "notices arrive", func() bool { return w.Status().Listening })
	eventually(t, 30*time.Second, "the worker lies down", func() bool { return rows() == want })
}

// An idle worker starts a job at its commit, not at its next poll.
func TestIdleWorkerIsWokenByACommit(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		began := make(chan time.Time, 1)
		w := start(t, s, lazy(10, never, func(context.Context, *pacht.Job[task]) error {
			began <- time.Now()
			return nil
		}))
		eventually(t, 30*time.Second, "notices arrive", func() bool { return w.Status().Listening })
		var took []time.Duration
		for range 50 {
			sent := time.Now()
			id := enqueue(t, s, 1)[0]
			took = append(took, (<-began).Sub(sent))
			becomes(t, s, id, pacht.Completed)
		}
		slices.Sort(took)
		if took[25] > 100*time.Millisecond {
			t.Errorf("half of the jobs began more than %s after they were sent", took[25])
		}
		checked(t, s)
	})
}

func TestEnqueueByAnyRoadWakes(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	s := db.open(t).(*postgres.Store)
	pool, rows := sleepers(t, db.url)
	var done sync.WaitGroup
	w := start(t, s, lazy(10, never, func(context.Context, *pacht.Job[task]) error { done.Done(); return nil }))
	asleep(t, w, rows, 1)
	done.Add(2)
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := s.Tx(tx).EnqueueTx(t.Context(), []pacht.NewJob{pacht.New(task{})})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "SELECT pacht.enqueue('task', '{}')"); err != nil {
		t.Fatal(err)
	}
	done.Wait()
	if err := w.end(); err != nil {
		t.Error(err)
	}
	if n := rows(); n != 0 {
		t.Errorf("%d rows of sleepers after the end", n)
	}
}

// An enqueue that looks for sleepers just before one lies down, and commits just after, tells
// nobody: the polls that follow find its job.
func TestWakeUpThatWasLostIsFoundByTheFastPolls(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	s := db.open(t).(*postgres.Store)
	pool, _ := sleepers(t, db.url)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := s.Tx(tx).EnqueueTx(t.Context(), []pacht.NewJob{pacht.New(task{})}); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	var once sync.Once
	start(t, &hooked{Store: s, slept: func() {
		once.Do(func() {
			if err := tx.Commit(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}}, lazy(1, never, func(context.Context, *pacht.Job[task]) error { close(done); return nil }))
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("the job waits for the next poll")
	}
}

// hooked is a store that calls a function after each Sleep, before it answers.
type hooked struct {
	pacht.Store
	slept func()
}

func (h *hooked) Sleep(ctx context.Context, owner string, queues []string, life time.Duration) error {
	err := h.Store.Sleep(ctx, owner, queues, life)
	h.slept()
	return err
}

// A Sleep that hangs or fails makes no claim wait.
func TestSleepThatHangsMeansPolling(t *testing.T) {
	t.Parallel()
	s := newDatabase(t, "postgres").open(t)
	hang := make(chan bool)
	defer close(hang)
	w := start(t, &hooked{Store: s, slept: func() { <-hang }}, lazy(1, 20*time.Millisecond, nothing))
	eventually(t, 30*time.Second, "notices arrive", func() bool { return w.Status().Listening })
	for range 5 {
		becomes(t, s, enqueue(t, s, 1)[0], pacht.Completed)
	}
	hang <- true
}

// S047
func TestWorkerBehindAPoolerInTransactionModePolls(t *testing.T) {
	t.Parallel()
	direct := newDatabase(t, "postgres")
	_, rows := sleepers(t, direct.url)
	s, err := openURL(pgtest.Bouncer(t, direct.url))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := start(t, s, lazy(5, 50*time.Millisecond, nothing))
	for range 5 {
		becomes(t, s, enqueue(t, s, 1)[0], pacht.Completed)
	}
	if w.Status().Listening || rows() != 0 {
		t.Errorf("it listens: %v, and has %d rows", w.Status().Listening, rows())
	}
	if err := w.Status().Unreachable; err != nil {
		t.Errorf("no notices are no outage: %v", err)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// S039
func TestWorkerWhoseListeningIsCutOffPollsAndListensAgain(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	s := db.open(t)
	pool, rows := sleepers(t, db.url)
	w := start(t, s, lazy(5, 50*time.Millisecond, nothing))
	for range 3 {
		asleep(t, w, rows, 1)
		if _, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE query LIKE 'LISTEN%' AND datname = current_database()`); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, enqueue(t, s, 1)[0], pacht.Completed)
	}
	asleep(t, w, rows, 1)
}

// S049: at full load nobody sleeps, so that no enqueue notifies.
func TestBusyWorkerHasNoRow(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	s := db.open(t)
	_, rows := sleepers(t, db.url)
	release := make(chan bool)
	w := start(t, s, lazy(1, never, func(ctx context.Context, job *pacht.Job[task]) error {
		if job.Args.N == 0 {
			return nil
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	}))
	asleep(t, w, rows, 1)
	ids := enqueue(t, s, 2) // the second fills the only slot
	eventually(t, 20*time.Second, "the worker whose slots are full rises", func() bool { return rows() == 0 })
	close(release)
	becomes(t, s, ids[1], pacht.Completed)
	eventually(t, 20*time.Second, "it lies down again", func() bool { return rows() == 1 })

	done := make(chan bool)
	go func() { // until many claims in a second have taken something
		defer close(done)
		for ctx := t.Context(); rows() > 0 && ctx.Err() == nil; {
			var jobs []pacht.NewJob
			for range 200 {
				jobs = append(jobs, pacht.New(task{}))
			}
			if _, err := s.Enqueue(ctx, jobs); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("the worker sleeps at full load")
	}
	eventually(t, time.Minute, "it lies down when all is done", func() bool { return rows() == 1 })
	last := enqueue(t, s, 1)[0]
	becomes(t, s, last, pacht.Completed)
}

// A worker that does not listen makes no enqueue notify.
func TestWorkerThatMayNotListenPolls(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	s := db.open(t)
	_, rows := sleepers(t, db.url)
	cfg := lazy(5, 20*time.Millisecond, nothing)
	cfg.NoListen = true
	w := start(t, s, cfg)
	for range 3 {
		becomes(t, s, enqueue(t, s, 1)[0], pacht.Completed)
	}
	if w.Status().Listening || rows() != 0 {
		t.Errorf("it listens: %v, and has %d rows", w.Status().Listening, rows())
	}
}

// A worker that is told to stop takes no more jobs, however long its handlers go on.
func TestStoppingWorkerRisesAtOnce(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	s := db.open(t)
	_, rows := sleepers(t, db.url)
	running, release := make(chan bool), make(chan bool)
	cfg := lazy(5, never, func(context.Context, *pacht.Job[task]) error {
		close(running)
		<-release
		return nil
	})
	cfg.Grace = time.Minute
	w := start(t, s, cfg)
	asleep(t, w, rows, 1)
	id := enqueue(t, s, 1)[0]
	<-running
	w.stop()
	eventually(t, 20*time.Second, "its row is gone", func() bool { return rows() == 0 })
	close(release)
	if err := w.end(); err != nil {
		t.Error(err)
	}
	if got := status(t, s, id); got != pacht.Completed {
		t.Errorf("the job is %s", got)
	}
}

// An idle process costs two transactions a second at most, however many queues it has.
func TestIdleProcessCostsTwoTransactionsASecond(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t, "autovacuum=off") // whose own transactions count too
	for _, queues := range []int{1, 10} {
		t.Run(fmt.Sprint(queues), func(t *testing.T) {
			t.Parallel()
			url := server.Database(t)
			s, err := openURL(url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if _, err := s.MigrateUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			pool, rows := sleepers(t, url)
			cfg := worker.Config{Queues: map[string]int{}, Handlers: []worker.Handler{worker.Handle(nothing)}, Logger: slog.New(slog.DiscardHandler)}
			for i := range queues {
				cfg.Queues[fmt.Sprint("q", i)] = 5
			}
			w := start(t, s, cfg)
			asleep(t, w, rows, queues)
			asked := 0
			commits := func() (n int) {
				asked++
				if err := pool.QueryRow(t.Context(), "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			pass := func(d time.Duration) {
				end := time.Now().Add(d)
				eventually(t, time.Minute, "time passes", func() bool { return time.Now().After(end) })
			}
			pass(11 * time.Second) // an idle session reports what it did after ten
			before := commits()
			asked = 0
			const span = 15 * time.Second
			pass(span)
			n := commits() - before
			// Each of the look, the watcher and the beat may fall once more into the span than its
			// rate says; and this pool pings before it asks.
			if most := int(2*span/time.Second) + 4; n-asked > most {
				t.Errorf("%d transactions in %s, want %d at most", n-asked, span, most)
			}
			t.Logf("%d transactions in %s", n-asked, span)
		})
	}
}

// listened counts calls of Listen.
type listened struct {
	pacht.Store
	calls atomic.Int32
}

func (l *listened) Listen(ctx context.Context, owner string, to pacht.Listener) error {
	l.calls.Add(1)
	return l.Store.Listen(ctx, owner, to)
}

// Nobody waits for notices while there is more to do than slots: a worker that comes to a backlog opens
// its connection for them when it has seen the end of that.
func TestWorkerListensOnceAQueueHasRunDry(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	s := &listened{Store: db.open(t)}
	const slots, jobs = 10, 30
	goOn, begun := make(chan struct{}), make(chan struct{}, jobs)
	enqueue(t, s, jobs)
	w := start(t, s, lazy(slots, never, func(context.Context, *pacht.Job[task]) error {
		begun <- struct{}{}
		<-goOn
		return nil
	}))
	for range slots {
		<-begun
	}
	time.Sleep(300 * time.Millisecond)
	if s.calls.Load() != 0 {
		t.Error("it listens while all slots are taken and more jobs wait")
	}
	close(goOn)
	eventually(t, 30*time.Second, "notices arrive", func() bool { return w.Status().Listening })
	if n := s.calls.Load(); n != 1 {
		t.Errorf("it listens %d times", n)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}
