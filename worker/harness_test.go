package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/pachttest"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

func TestMain(m *testing.M) {
	if url := os.Getenv("PACHT_CHILD"); url != "" {
		child(url)
		return
	}
	pgtest.Main(m)
}

// store is a store as these tests need it.
type store interface {
	pachttest.Ager
	pacht.Migrator
}

// database is one database that several stores open, as several processes would.
type database struct {
	url  string // for a child process
	open func(t *testing.T) store
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, db database)) {
	t.Helper()
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t, kind))
		})
	}
}

func newDatabase(t *testing.T, kind string) database {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	if kind == "postgres" {
		url = pgtest.Database(t)
	}
	db := database{url: url, open: func(t *testing.T) store {
		t.Helper()
		s, err := openURL(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return s
	}}
	if _, err := db.open(t).MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func openURL(url string) (store, error) {
	if path, ok := cutPrefix(url, "sqlite:"); ok {
		return sqlite.Open(path, sqlite.Config{})
	}
	return postgres.Open(context.Background(), url, postgres.Config{})
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

// task is the job of these tests: what it does is the handler's.
type task struct {
	Do string `json:"do,omitempty"`
	N  int    `json:"n,omitempty"`
}

func (task) Kind() string { return "task" }

func enqueue(t *testing.T, s pacht.Store, n int, opts ...pacht.Option) []pacht.ID {
	t.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.New(task{N: i}, opts...)
	}
	answers, err := s.Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]pacht.ID, n)
	for i, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		ids[i] = a.ID
	}
	return ids
}

// running is a worker in this process.
type running struct {
	*worker.Worker
	stop context.CancelFunc
	done chan struct{}
	err  error
	seen *recorder
}

// recorder keeps the events of a worker.
type recorder struct {
	mu     sync.Mutex
	events []worker.Event
}

func (r *recorder) add(ev worker.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
}

func (r *recorder) count(typ worker.EventType) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, ev := range r.events {
		if ev.Type == typ {
			n++
		}
	}
	return n
}

// quick is a configuration with short times, for one queue.
func quick(slots int, fn func(context.Context, *pacht.Job[task]) error) worker.Config {
	return worker.Config{
		Queues:   map[string]int{pacht.DefaultQueue: slots},
		Handlers: []worker.Handler{worker.Handle(fn)},
		Poll:     10 * time.Millisecond,
		Watch:    watch.Config{Period: 100 * time.Millisecond, Poll: 20 * time.Millisecond},
		Logger:   slog.New(slog.DiscardHandler),
	}
}

// start runs a worker until the test ends or stops it.
func start(t *testing.T, s pacht.Store, cfg worker.Config) *running {
	t.Helper()
	seen := &recorder{}
	cfg.OnEvent = seen.add
	w, err := worker.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Worker: w, stop: cancel, done: make(chan struct{}), seen: seen}
	go func() {
		defer close(r.done)
		r.err = w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

// end stops the worker in order and returns what Run said.
func (r *running) end() error {
	r.stop()
	<-r.done
	return r.err
}

// eventually polls until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

func status(t *testing.T, s pacht.Reader, id pacht.ID) pacht.Status {
	t.Helper()
	return job(t, s, id).Status
}

func job(t *testing.T, s pacht.Reader, id pacht.ID) pacht.JobInfo {
	t.Helper()
	j, err := s.Job(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func becomes(t *testing.T, s pacht.Reader, id pacht.ID, want pacht.Status) {
	t.Helper()
	eventually(t, 20*time.Second, "job becomes "+string(want), func() bool { return status(t, s, id) == want })
}

// outcomes is the ledger of a job, as words.
func outcomes(t *testing.T, s pacht.Reader, id pacht.ID) []pacht.Outcome {
	t.Helper()
	var list []pacht.Outcome
	for _, a := range ledger(t, s, id) {
		list = append(list, a.Outcome)
	}
	return list
}

func ledger(t *testing.T, s pacht.Reader, id pacht.ID) []pacht.Attempt {
	t.Helper()
	attempts, err := s.Attempts(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return attempts
}

func checked(t *testing.T, s pacht.Checker) {
	t.Helper()
	bad, err := s.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range bad {
		t.Errorf("check: %+v", v)
	}
}

// faulty is a real store some of whose calls fail on the way, as a broken network makes them.
type faulty struct {
	store
	failRenew, failClaim, failSettle atomic.Bool
	busyRenew                        atomic.Bool // every row seems locked by somebody else
	// loseClaims and loseSettles carry out the call and lose its answer.
	loseClaims, loseSettles atomic.Int64
}

var errNetwork = errors.New("injected: connection reset")

func (f *faulty) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	if f.failRenew.Load() {
		return pacht.Renewals{}, errNetwork
	}
	if f.busyRenew.Load() {
		now, err := f.Now(ctx)
		answer := pacht.Renewals{Now: now}
		for _, ref := range refs {
			answer.Rows = append(answer.Rows, pacht.Renewed{Ref: ref, State: pacht.RenewBusy})
		}
		return answer, err
	}
	return f.store.Renew(ctx, refs)
}

func (f *faulty) Claim(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
	if f.failClaim.Load() {
		return pacht.Claims{}, errNetwork
	}
	c, err := f.store.Claim(ctx, req)
	if err == nil && len(c.Jobs) > 0 && f.loseClaims.Add(-1) >= 0 {
		return pacht.Claims{}, errNetwork
	}
	return c, err
}

func (f *faulty) Settle(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
	if f.failSettle.Load() {
		return nil, errNetwork
	}
	s, err := f.store.Settle(ctx, batch)
	if err == nil && f.loseSettles.Add(-1) >= 0 {
		return nil, errNetwork
	}
	return s, err
}
