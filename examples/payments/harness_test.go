package payments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/api"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
	"github.com/pacht-queue/pacht/worker"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const secret = "s3cret"

// shop is a payments system on a real database, with a real provider over HTTP.
type shop struct {
	t        *testing.T
	place    *payments.Place
	book     *payments.Book
	provider *psp.Client
	effects  *effect.Effects
	handlers *payments.Handlers
	api      *httptest.Server
}

var promises = payments.Promises{KeyLife: time.Hour, Consistency: 200 * time.Millisecond}

// each runs a test on both databases.
func each(t *testing.T, cfg psp.Config, test func(t *testing.T, s *shop)) {
	t.Helper()
	t.Parallel() // most of the time they wait for calls without an answer
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newShop(t, payments.Address{File: filepath.Join(t.TempDir(), "shop.db")}, cfg))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		// A name that needs quoting.
		test(t, newShop(t, payments.Address{Postgres: pgtest.Database(t), Schema: "The Queue"}, cfg))
	})
}

func newShop(t *testing.T, at payments.Address, cfg psp.Config) *shop {
	t.Helper()
	place, err := payments.Open(t.Context(), at)
	must(t, err)
	t.Cleanup(func() { must(t, place.Close()) })
	must(t, place.Migrate(t.Context()))
	cfg.Ledger = filepath.Join(t.TempDir(), "provider.jsonl")
	// The provider cuts calls that get no answer; its caller has patience, so that a slow machine
	// makes no time-outs of its own.
	cfg.Silence = 100 * time.Millisecond
	server, err := psp.Open(cfg)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, func(u string) error { url <- u; return nil })
	}()
	s := &shop{t: t, place: place, book: place.Book, provider: psp.NewClient(<-url, 30*time.Second), effects: effect.New(place.Store)}
	s.handlers, err = payments.NewHandlers(s.book, s.provider, place.Store, s.effects, promises)
	must(t, err)
	handler, err := api.New(api.Config{Book: s.book, Provider: s.provider, Secret: secret, Logger: quiet})
	must(t, err)
	s.api = httptest.NewServer(handler)
	t.Cleanup(func() {
		s.provider.Close()
		s.api.Client().CloseIdleConnections()
		s.api.Close()
		stop()
		must(t, errors.Join(<-ended, server.Close()))
		broken, err := place.Store.Check(context.Background())
		must(t, err)
		for _, v := range broken {
			t.Errorf("rule %s is broken by job %d: %s", v.Rule, v.Job, v.Detail)
		}
		if n, err := s.book.Unbalanced(context.Background()); err != nil || n != 0 {
			t.Errorf("%d movements are not balanced, %v", n, err)
		}
	})
	return s
}

var quiet = slog.New(slog.DiscardHandler)

// webhooks lets the provider send its events to the shop.
func (s *shop) webhooks() {
	s.t.Helper()
	must(s.t, s.provider.SetWebhook(s.t.Context(), psp.Webhook{URL: s.api.URL + "/webhooks/psp", Secret: secret}))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eur(n int64) money.Amount { return money.Amount{Minor: n, Currency: "EUR"} }

func (s *shop) create(id string, opts ...pacht.Option) pacht.ID {
	s.t.Helper()
	e, err := s.book.Create(s.t.Context(), payments.Payment{ID: id, Amount: eur(1999)}, opts...)
	must(s.t, err)
	return e.ID
}

func (s *shop) scenario(reference string, sc psp.Scenario) {
	s.t.Helper()
	must(s.t, s.provider.SetScenario(s.t.Context(), reference, sc))
}

// work runs a worker until no job is due or running any more.
func (s *shop) work() {
	s.t.Helper()
	s.workUntil("all jobs are done or parked", func() bool {
		tally := s.tally()
		return tally.Pending+tally.Processing == 0
	})
}

func (s *shop) workUntil(what string, true func() bool) {
	s.t.Helper()
	w, err := worker.New(s.place.Store, worker.Config{
		Queues:   map[string]int{pacht.DefaultQueue: 4},
		Handlers: s.handlers.All(),
		Retry:    pacht.Fixed(5 * time.Millisecond),
		Poll:     5 * time.Millisecond,
		Logger:   quiet,
	})
	must(s.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.until(what, true)
	stop()
	must(s.t, <-ended)
}

func (s *shop) until(what string, true func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !true(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain until %s: %+v", what, s.tally())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// reconcile makes one pass, with policies that do not take hours.
func (s *shop) reconcile(lane reconcile.Lane) reconcile.Report {
	s.t.Helper()
	policies := map[reconcile.Class]reconcile.Policy{}
	for class, p := range reconcile.DefaultPolicies() {
		p.Base, p.Cap, p.MaxAge = 10*time.Millisecond, 50*time.Millisecond, time.Second
		policies[class] = p
	}
	r, err := reconcile.New(reconcile.Config{
		Store: s.place.Store, Ours: payments.Ours{Book: s.book}, Theirs: payments.Theirs{Provider: s.provider}, Effects: s.effects,
		Policies: policies, Grace: time.Second, Rate: 10000, Logger: quiet,
	})
	must(s.t, err)
	report, err := r.Pass(s.t.Context(), lane, false)
	must(s.t, err)
	return report
}

// age makes everything about payments older.
func (s *shop) age(id string, by time.Duration) {
	s.t.Helper()
	statement := `UPDATE payments SET created_at = created_at - ?1 WHERE payment_id = ?2`
	if s.onPostgres() {
		statement = `UPDATE "The Queue".payments SET created_at = created_at - $1::bigint * interval '1 millisecond' WHERE payment_id = $2`
	}
	s.exec(statement, by.Milliseconds(), id)
}

func (s *shop) onPostgres() bool { return s.place.DB != nil && s.dialect() == "postgres" }

func (s *shop) dialect() string {
	var n int
	if s.place.DB.QueryRowContext(s.t.Context(), `SELECT count(*) FROM sqlite_master`).Scan(&n) == nil {
		return "sqlite"
	}
	return "postgres"
}

func (s *shop) exec(statement string, args ...any) {
	s.t.Helper()
	_, err := s.place.DB.ExecContext(s.t.Context(), statement, args...)
	must(s.t, err)
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

func (s *shop) job(id pacht.ID) pacht.JobInfo {
	s.t.Helper()
	j, err := s.place.Store.Job(s.t.Context(), id)
	must(s.t, err)
	return j
}

// balance is what stands on an account in euros.
func (s *shop) balance(account string) int64 {
	s.t.Helper()
	all, err := s.book.Balances(s.t.Context())
	must(s.t, err)
	for _, b := range all {
		if b.Account == account && b.Currency == "EUR" {
			return b.Minor
		}
	}
	return 0
}

// breaks lists the open ones, as reference: class.
func (s *shop) breaks() map[string]string {
	s.t.Helper()
	open, err := s.place.Store.Breaks(s.t.Context(), pacht.BreakFilter{Limit: 1000})
	must(s.t, err)
	all := map[string]string{}
	for _, b := range open {
		all[b.Reference] = b.Class + " " + string(b.Status)
	}
	return all
}

// receipts is how many receipt jobs there are.
func (s *shop) receipts() int {
	s.t.Helper()
	jobs, err := s.place.Store.Jobs(s.t.Context(), pacht.Filter{Kind: "receipt", Limit: 1000})
	must(s.t, err)
	return len(jobs)
}

// send posts JSON to the shop's API, and answers status and body.
func (s *shop) send(path string, header map[string]string, body any) (int, string) {
	s.t.Helper()
	raw, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		must(s.t, err)
		raw = string(encoded)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.api.URL+path, bytes.NewReader([]byte(raw)))
	must(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return s.do(req)
}

func (s *shop) get(path string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.api.URL+path, nil)
	must(s.t, err)
	return s.do(req)
}

func (s *shop) do(req *http.Request) (int, string) {
	s.t.Helper()
	res, err := s.api.Client().Do(req)
	must(s.t, err)
	said, err := io.ReadAll(res.Body)
	must(s.t, errors.Join(err, res.Body.Close()))
	return res.StatusCode, string(said)
}

// event sends an event, signed, and answers what became of it.
func (s *shop) event(e psp.Event) (int, payments.Received) {
	s.t.Helper()
	body, err := json.Marshal(e)
	must(s.t, err)
	status, said := s.send("/webhooks/psp", map[string]string{psp.SignatureHeader: psp.Sign(secret, time.Now(), body)}, string(body))
	var got payments.Received
	if status == http.StatusOK || status == http.StatusUnprocessableEntity {
		must(s.t, json.Unmarshal([]byte(said), &got))
	}
	return status, got
}

// happened is an event about a charge of p1 over 19.99 euros.
func happened(id, charge, status string) psp.Event {
	return psp.Event{ID: id, Type: "charge." + status, Created: time.Now().UTC(), Charge: psp.Charge{
		ID: charge, Reference: "p1", Status: status, Amount: eur(1999), At: time.Now().UTC(),
	}}
}
