package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint/scan"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/reconcile"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// pay is a job with an effect.
type pay struct {
	N int `json:"n"`
}

func (pay) Kind() string { return "pay" }

type receipt struct {
	Key string `json:"key"`
}

// payerTask is what a payer is told: a process with a worker whose handler calls a provider, a
// sweeper, and a reconciler of the records in lab_records.
type payerTask struct{ Database, Provider string }

func runPayer(ctx context.Context, task []byte, ready func(any) error) (err error) {
	var order payerTask
	if err := json.Unmarshal(task, &order); err != nil {
		return err
	}
	s, err := postgres.Open(ctx, order.Database, postgres.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	cfg, err := pgxpool.ParseConfig(order.Database)
	if err != nil {
		return err
	}
	// Before CommitTx a heal's transaction has the bounds of its role alone.
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "2s"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	charge, err := effect.Define(effect.New(s), "charge", effect.Spec[receipt]{KeyLife: 24 * time.Hour, Probe: order.probe})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	w, err := worker.New(s, worker.Config{
		Queues: map[string]int{pacht.DefaultQueue: 2},
		Handlers: []worker.Handler{worker.HandleWith(worker.HandlerOptions{Retry: pacht.Fixed(20 * time.Millisecond)}, func(ctx context.Context, job *pacht.Job[pay]) error {
			_, err := charge.Do(ctx, job, func(ctx context.Context, call effect.Call) (receipt, error) {
				return receipt{call.Key}, order.ask(ctx, http.MethodPost, call.Key)
			})
			return err
		})},
		Poll: 50 * time.Millisecond, Grace: time.Second, Retention: pacht.Retention{Completed: time.Second},
		Watch: watch.Config{Period: 200 * time.Millisecond, Poll: 50 * time.Millisecond}, Logger: log,
	})
	if err != nil {
		return err
	}
	r, err := reconcile.New(reconcile.Config{Store: s, Ours: records{s, pool}, Theirs: records{}, Logger: log})
	if err != nil {
		return err
	}
	if err := ready(struct{}{}); err != nil {
		return err
	}
	var passes sync.WaitGroup
	passes.Go(func() {
		for clock.Sleep(ctx, 300*time.Millisecond) == nil {
			_, _ = r.Pass(ctx, reconcile.LanePending, false) // what fails comes again with the next
		}
	})
	err = w.Run(ctx)
	passes.Wait()
	return err
}

var errNever = errors.New("the provider knows of no such call")

// ask calls the provider, or asks it.
func (p payerTask) ask(ctx context.Context, method, key string) error {
	req, err := http.NewRequestWithContext(ctx, method, p.Provider+"?key="+url.QueryEscape(key), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return errNever
	}
	return errors.New(answer.Status)
}

func (p payerTask) probe(ctx context.Context, e pacht.Effect) (effect.Verdict[receipt], error) {
	switch err := p.ask(ctx, http.MethodGet, e.Key); {
	case err == nil:
		return effect.Verdict[receipt]{State: effect.Succeeded, Result: receipt{e.Key}}, nil
	case errors.Is(err, errNever):
		return effect.Verdict[receipt]{State: effect.NotFound}, nil
	default:
		return effect.Verdict[receipt]{}, err
	}
}

// records are our side of the reconciler's work, and a provider that has everything as paid.
type records struct {
	store *postgres.Store
	pool  *pgxpool.Pool
}

func (records) Reference(pacht.JobInfo) string { return "" }

func record(reference, state string) reconcile.Record {
	return reconcile.Record{Reference: reference, State: reconcile.State(state), Amount: money.Amount{Minor: 1999, Currency: "EUR"}}
}

func (r records) Find(ctx context.Context, reference string) (reconcile.Record, error) {
	var state string
	err := r.pool.QueryRow(ctx, "SELECT state FROM lab_records WHERE reference = $1", reference).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return reconcile.Record{State: reconcile.NotFound}, nil
	}
	return record(reference, state), err
}

func (r records) Pending(ctx context.Context, _ time.Duration, after string, limit int) ([]reconcile.Record, error) {
	rows, err := r.pool.Query(ctx, "SELECT reference FROM lab_records WHERE state = 'pending' AND reference > $1 ORDER BY reference LIMIT $2", after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (reconcile.Record, error) {
		var reference string
		err := row.Scan(&reference)
		return record(reference, "pending"), err
	})
}

func (records) Reversible(context.Context, string, int) ([]reconcile.Record, error) { return nil, nil }

func (r records) Heal(ctx context.Context, f *reconcile.Finding) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE lab_records SET state = 'succeeded', healed = healed + 1 WHERE reference = $1 AND state = 'pending'", f.Theirs.Reference)
		if err != nil {
			return err
		}
		return f.CommitTx(ctx, r.store.Tx(tx))
	})
}

func (records) Lookup(_ context.Context, reference string) (reconcile.Record, error) {
	return record(reference, "succeeded"), nil
}

// provider takes each key for one charge.
type provider struct {
	mu    sync.Mutex
	calls map[string]int // by key
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := r.URL.Query().Get("key")
	if r.Method == http.MethodPost {
		p.calls[key]++
	} else if p.calls[key] == 0 {
		w.WriteHeader(http.StatusNotFound)
	}
}

// R10, S100: a process that pays dies, or stands still until another has taken its jobs, with the
// intent written and nobody called; with the provider's answer in hand and not stored; with it
// stored; in the middle of a sweep, and of a heal. Each job is charged once, by one key; a call whose
// outcome the provider can tell is not made again; each record is healed once.
func TestPayerInEveryPointChargesOnce(t *testing.T) {
	points, err := scan.Points(os.DirFS("../.."), "effect", "reconcile", "sweep")
	if err != nil || len(points) < 5 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	seed := lab.Seed(t)
	// Two columns, so that not all of these processes run at once.
	for _, action := range []string{"kill", "stop"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			for _, point := range lab.Draw(t, seed, 2, points) {
				t.Run(point.Name, func(t *testing.T) { payerIn(t, point.Name, action) })
			}
		})
	}
}

func payerIn(t *testing.T, point, action string) {
	const jobs = 8
	order := payerTask{Database: lab.FreshServer(t)}
	bank := &provider{calls: map[string]int{}}
	server := httptest.NewServer(bank)
	defer server.Close()
	order.Provider = server.URL
	lab.Exec(t, order.Database, `CREATE TABLE lab_records (reference text PRIMARY KEY, state text NOT NULL, healed integer NOT NULL DEFAULT 0)`)
	lab.Exec(t, order.Database, `INSERT INTO lab_records (reference, state) SELECT 'pay_' || i, 'pending' FROM generate_series(1, 5) AS i`)
	s := lab.Open(t, order.Database)
	list := make([]pacht.NewJob, jobs)
	for i := range list {
		list[i] = pacht.New(pay{i}, pacht.TTL(ttl))
	}
	if _, err := s.Enqueue(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	first := lab.Spawn(t, "payer", order, fmt.Sprintf("PACHT_FAILPOINT=%s=%s@1", point, action))
	lab.Await(t, 20*time.Second, "it dies or stands still", func() bool { return first.Ended() || first.Frozen() })
	second := lab.Spawn(t, "payer", order)
	lab.Await(t, 60*time.Second, "all jobs are done and swept, all records healed", func() bool { return left(t, order.Database) == "0 0 0" })
	if action == "stop" {
		first.Thaw()
		lab.Await(t, 20*time.Second, "it goes on", func() bool { return !first.Frozen() })
		first.Signal(15)
	}
	second.Signal(15)
	for _, p := range []*lab.Process{first, second} {
		code, killed, err := p.Wait(20 * time.Second)
		if err != nil || killed != (p == first && action == "kill") || !killed && code != 0 {
			t.Errorf("ended with %d, killed %t, %v%s", code, killed, err, p.LastWords())
		}
	}
	if got := left(t, order.Database); got != "0 0 0" {
		t.Errorf("left: %s", got)
	}
	bank.mu.Lock()
	defer bank.mu.Unlock()
	most := 1
	if point == "effect.intended" && action == "stop" {
		most = 2 // under one key: the other has called meanwhile, and no clock of ours stops who stood still
	}
	for key, n := range bank.calls {
		if n > most {
			t.Errorf("%s was called %d times", key, n)
		}
	}
	if len(bank.calls) != jobs {
		t.Errorf("%d charges for %d jobs", len(bank.calls), jobs)
	}
	if bad, err := s.Check(t.Context()); err != nil || len(bad) > 0 {
		t.Errorf("check: %+v, %v", bad, err)
	}
}

// left is how many jobs are there, finished or not, how many records are pending, and how many were
// not healed just once.
func left(t *testing.T, database string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var jobs, pending, odd int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pacht.jobs), (SELECT count(*) FROM lab_records WHERE state = 'pending'),
		(SELECT count(*) FROM lab_records WHERE healed > 1)`).Scan(&jobs, &pending, &odd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %d %d", jobs, pending, odd)
}
