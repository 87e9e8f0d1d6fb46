package payments_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/worker"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shop is a payments system on a real database, with a real provider.
type shop struct {
	t        *testing.T
	store    pacht.Store
	book     *payments.Book
	provider *psp.Client
}

// each runs a test on both databases.
func each(t *testing.T, cfg psp.Config, test func(t *testing.T, s *shop)) {
	t.Run("sqlite", func(t *testing.T) {
		store, err := sqlite.Open(filepath.Join(t.TempDir(), "shop.db"), sqlite.Config{})
		must(t, err)
		t.Cleanup(func() { must(t, store.Close()) })
		book, err := payments.OnSQLite(store)
		must(t, err)
		test(t, newShop(t, store, store, book, cfg))
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Database(t)
		// A name that needs quoting.
		const schema = "The Queue"
		store, err := postgres.Open(t.Context(), url, postgres.Config{Schema: schema})
		must(t, err)
		t.Cleanup(func() { must(t, store.Close()) })
		conn, err := pgx.ParseConfig(url)
		must(t, err)
		db := stdlib.OpenDB(*conn)
		t.Cleanup(func() { must(t, db.Close()) })
		book, err := payments.OnPostgres(db, store, schema)
		must(t, err)
		test(t, newShop(t, store, store, book, cfg))
	})
}

func newShop(t *testing.T, store pacht.Store, schema pacht.Migrator, book *payments.Book, cfg psp.Config) *shop {
	_, err := schema.MigrateUp(t.Context())
	must(t, err)
	must(t, book.CreateTables(t.Context()))
	cfg.Ledger = filepath.Join(t.TempDir(), "provider.jsonl")
	server, err := psp.Open(cfg)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, func(u string) error { url <- u; return nil })
	}()
	s := &shop{t: t, store: store, book: book, provider: psp.NewClient(<-url, 5*time.Second)}
	t.Cleanup(func() {
		s.provider.Close()
		stop()
		must(t, errors.Join(<-ended, server.Close()))
		broken, err := store.Check(context.Background())
		must(t, err)
		for _, v := range broken {
			t.Errorf("rule %s is broken by job %d: %s", v.Rule, v.Job, v.Detail)
		}
	})
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shop) create(id string, opts ...pacht.Option) pacht.ID {
	s.t.Helper()
	e, err := s.book.Create(s.t.Context(), payments.Payment{ID: id, AmountMinor: 1999, Currency: "EUR"}, opts...)
	must(s.t, err)
	return e.ID
}

// work runs a worker until all jobs are finished or parked.
func (s *shop) work(provider payments.Provider) {
	s.t.Helper()
	charger := &payments.Charger{Book: s.book, Provider: provider}
	w, err := worker.New(s.store, worker.Config{
		Queues:   map[string]int{pacht.DefaultQueue: 4},
		Handlers: []worker.Handler{worker.Handle(charger.Handle)},
		Retry:    pacht.Fixed(5 * time.Millisecond),
		Poll:     5 * time.Millisecond,
		Logger:   slog.New(slog.DiscardHandler),
	})
	must(s.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.until(func() bool {
		tally := s.tally()
		return tally.Pending+tally.Processing == 0
	})
	stop()
	must(s.t, <-ended)
}

func (s *shop) until(true func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !true(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("it did not come to that: %+v", s.tally())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (s *shop) tally() payments.Tally {
	s.t.Helper()
	tally, err := s.book.Tally(context.Background())
	must(s.t, err)
	return tally
}

func (s *shop) totals() psp.Totals {
	s.t.Helper()
	sum, err := s.provider.Totals(s.t.Context())
	must(s.t, err)
	return sum
}

func (s *shop) payment(id string) payments.Payment {
	s.t.Helper()
	p, err := s.book.Payment(s.t.Context(), id)
	must(s.t, err)
	return p
}

// claim takes the only due job, as the worker of that name.
func (s *shop) claim(owner string) *pacht.Job[payments.Charge] {
	s.t.Helper()
	var got pacht.JobInfo
	s.until(func() bool {
		claims, err := s.store.Claim(s.t.Context(), pacht.ClaimRequest{Owner: owner, Queue: pacht.DefaultQueue, Kinds: []string{"charge"}, Limit: 1})
		must(s.t, err)
		if len(claims.Jobs) == 0 {
			return false
		}
		got = claims.Jobs[0]
		return true
	})
	job := &pacht.Job[payments.Charge]{Held: pacht.NewHeld(got, keeper{s.store, got.Ref()})}
	must(s.t, json.Unmarshal(got.Args, &job.Args))
	return job
}

// keeper is a lease without a worker: nobody renews it, and nobody stops its handler.
type keeper struct {
	store pacht.Store
	ref   pacht.Ref
}

func (keeper) Remaining() time.Duration                    { return time.Minute }
func (keeper) Ensure(context.Context, time.Duration) error { return nil }
func (keeper) SetOutput(json.RawMessage) error             { return nil }
func (keeper) EffectOpen(string, bool)                     {}
func (k keeper) SetStep(ctx context.Context, name string, data json.RawMessage) error {
	return k.store.SetStep(ctx, k.ref, name, data)
}
func (k keeper) SetStepTx(ctx context.Context, tx pacht.Tx, name string, data json.RawMessage) error {
	return tx.SetStepTx(ctx, k.ref, name, data)
}
func (k keeper) Steps(ctx context.Context) ([]pacht.Step, error) {
	return k.store.Steps(ctx, k.ref.Job)
}
func (k keeper) CompleteTx(ctx context.Context, tx pacht.Tx) error {
	return tx.SettleTx(ctx, pacht.Settlement{Ref: k.ref, Outcome: pacht.OutcomeCompleted})
}
