package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// numbered enqueues jobs 0 to n-1 from as many goroutines and answers what each was told.
func numbered(t *testing.T, s *Store, n int) (ids []pacht.ID, errs []error) {
	t.Helper()
	ids, errs = make([]pacht.ID, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			answers, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{i})})
			if errs[i] = err; err == nil {
				ids[i], errs[i] = answers[0].ID, answers[0].Err
			}
		})
	}
	all.Wait()
	return ids, errs
}

func TestJobsThatAreEnqueuedTogetherAreAnsweredEachWithItsOwn(t *testing.T) { // R11, R12
	s, pool := newStore(t)
	ids, errs := numbered(t, s, 200)
	for i, id := range ids {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		job, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if want := string(pacht.New(charge{i}).Args); string(job.Args) != want {
			t.Errorf("job %d has the args %s, not %s", id, job.Args, want)
		}
	}
	// Each transaction has its own created_at.
	if n := value(t, pool, "SELECT count(DISTINCT created_at) < 150 FROM pacht.jobs"); n != "true" {
		t.Error("200 jobs at once went in nearly as many transactions")
	}
}

// Whoever was just answered and comes again goes with those who have waited meanwhile: without that
// eight callers are two groups of four for ever.
func TestCallersThatComeAgainShareTheNextTransaction(t *testing.T) {
	s, pool := newStore(t)
	const callers, each = 8, 100
	var of float64
	for range 20 { // on a busy machine some come late
		execute(t, pool, "TRUNCATE pacht.leases, pacht.jobs")
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for i := range each {
					if answers, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{i})}); err != nil || answers[0].Err != nil {
						t.Error(answers, err)
					}
				}
			})
		}
		all.Wait()
		if n := value(t, pool, "SELECT count(*) FROM pacht.jobs"); n != strconv.Itoa(callers*each) {
			t.Fatalf("%s jobs were stored", n)
		}
		transactions, err := strconv.Atoi(value(t, pool, "SELECT count(DISTINCT xmin::text) FROM pacht.jobs"))
		if err != nil {
			t.Fatal(err)
		}
		if of = callers * each / float64(transactions); of > 5 {
			return
		}
	}
	t.Errorf("%d callers went in groups of %.1f", callers, of)
}

func TestRefusedJobDoesNotStopThoseEnqueuedWithIt(t *testing.T) { // R12
	s, pool := newStore(t)
	execute(t, pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF new.args::text LIKE '%:7}' THEN RAISE EXCEPTION 'refused' USING ERRCODE = '23514'; END IF;
		RETURN new; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON pacht.jobs FOR EACH ROW EXECUTE FUNCTION refuse()`)
	_, errs := numbered(t, s, 40)
	for i, err := range errs {
		if (err != nil) != (i == 7) {
			t.Errorf("job %d: %v", i, err)
		}
	}
	if n := value(t, pool, "SELECT count(*) FROM pacht.jobs"); n != "39" {
		t.Errorf("%s jobs were stored", n)
	}
}

func TestEnqueueThatGivesUpBeforeItWasSentStoresNothing(t *testing.T) { // R11
	s, pool := openAt(t, pgtest.Database(t), Config{}, func(cfg *pgxpool.Config) { cfg.MaxConns = 1 })
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Enqueue(ctx, []pacht.NewJob{pacht.New(charge{1})})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pacht.ErrUnknown) {
		t.Errorf("it answered %v", err)
	}
	conn.Release()
	// Who comes after it is not held up by it, and nothing of it is left.
	if _, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{2})}); err != nil {
		t.Fatal(err)
	}
	if n := value(t, pool, "SELECT string_agg(args::text, ' ') FROM pacht.jobs"); strings.Contains(n, "1}") {
		t.Errorf("stored: %s", n)
	}
}

func TestClosedStoreRefusesSingleJobs(t *testing.T) {
	s, _ := openAt(t, pgtest.Database(t), Config{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{1})}); !errors.Is(err, pacht.ErrClosed) {
		t.Errorf("it answered %v", err)
	}
}

// Whoever waits behind a group that takes long when the store is closed gets an answer.
func TestCloseLeavesNobodyWaitingBehindASlowGroup(t *testing.T) {
	s, pool := openAt(t, pgtest.Database(t), Config{})
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "LOCK TABLE pacht.jobs IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	const callers = 8
	done := make(chan error, callers)
	call := func() {
		_, err := s.Enqueue(context.Background(), []pacht.NewJob{pacht.New(charge{1})})
		done <- err
	}
	go call()
	until(t, "the first group is on its way and slow", func() bool {
		sent := value(t, pool, "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pacht.jobs'::regclass") == "1"
		s.group.mu.Lock()
		defer s.group.mu.Unlock()
		return sent && s.group.running == 0
	})
	s.group.mu.Lock()
	s.group.running = groupsAtOnce // as if the others were about to become slow as well
	s.group.mu.Unlock()
	for range callers - 1 {
		go call()
	}
	until(t, "the others wait", func() bool {
		s.group.mu.Lock()
		defer s.group.mu.Unlock()
		return len(s.group.waiting) == callers-1
	})
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	until(t, "the store is closed", func() bool { return s.closed.Load() })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for range callers {
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, pacht.ErrClosed) {
				t.Errorf("it answered %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a caller still waits")
		}
	}
}
