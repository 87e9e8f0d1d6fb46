package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/examples/payments/service"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/reconcile"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs something until the test ends, and answers where it serves.
func start(t *testing.T, run func(ctx context.Context, ready func(url string) error) error) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- run(ctx, func(u string) error { url <- u; return nil }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case u := <-url:
		return u
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return ""
}

// The whole service, over HTTP, with a provider that does all that a provider can do: in the end
// both ledgers are equal, and what is not is an open break that a person was given.
func TestServiceEndsWithEqualLedgersWhateverTheProviderDoes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		serve(t, payments.Address{File: filepath.Join(t.TempDir(), "shop.db")})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		serve(t, payments.Address{Postgres: pgtest.Database(t)})
	})
}

func serve(t *testing.T, at payments.Address) {
	const secret, n = "s3cret", 48
	mix := map[string]int{}
	for _, name := range psp.Scenarios() {
		mix[name] = 1
	}
	provider, err := psp.Open(psp.Config{Ledger: filepath.Join(t.TempDir(), "psp.jsonl"), Seed: 5, Mix: mix, Delay: 300 * time.Millisecond, Silence: 200 * time.Millisecond})
	must(t, err)
	t.Cleanup(func() { must(t, provider.Close()) })
	url := start(t, provider.Serve)
	there := psp.NewClient(url, 5*time.Second)
	t.Cleanup(there.Close)

	policies := map[reconcile.Class]reconcile.Policy{}
	for class, p := range reconcile.DefaultPolicies() {
		p.Base, p.Cap, p.MaxAge = 100*time.Millisecond, 200*time.Millisecond, time.Minute
		policies[class] = p
	}
	shop := start(t, func(ctx context.Context, ready func(string) error) error {
		return service.Run(ctx, service.Config{
			Address: at, Provider: url, Secret: secret,
			Promises: payments.Promises{KeyLife: time.Hour, Consistency: 500 * time.Millisecond},
			Reconcile: reconcile.Config{
				Policies: policies, Grace: time.Second, Period: 200 * time.Millisecond,
				SlowPeriod: time.Second, ListPeriod: time.Second, Rate: 1000,
			},
			Logger: slog.New(slog.DiscardHandler),
		}, ready)
	})
	must(t, there.SetWebhook(t.Context(), psp.Webhook{URL: shop + "/webhooks/psp", Secret: secret}))
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for i := range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shop+"/payments", strings.NewReader(`{"amount":{"amount_minor":1999,"currency":"EUR"}}`))
		must(t, err)
		req.Header.Set("Idempotency-Key", fmt.Sprint(i))
		req.Header.Set("Content-Type", "application/json")
		if status, said := do(t, client, req); status != http.StatusCreated {
			t.Fatalf("%d %s", status, said)
		}
	}
	place, err := payments.Open(t.Context(), at)
	must(t, err)
	defer func() { must(t, place.Close()) }()
	equal := func() (string, bool) { return compare(t, place, there, n) }
	for deadline := time.Now().Add(2 * time.Minute); ; {
		why, ok := equal()
		if ok {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(why)
		}
		<-time.After(100 * time.Millisecond)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shop+"/state", nil)
	must(t, err)
	status, said := do(t, client, req)
	var state map[string]any
	if err := json.Unmarshal([]byte(said), &state); err != nil || status != http.StatusOK || state["payments"] != float64(n) {
		t.Errorf("%d %s", status, said)
	}
}

func do(t *testing.T, client *http.Client, req *http.Request) (int, string) {
	t.Helper()
	res, err := client.Do(req)
	must(t, err)
	said, err := io.ReadAll(res.Body)
	must(t, errors.Join(err, res.Body.Close()))
	return res.StatusCode, string(said)
}

// Two processes that start at once on an empty database make its tables once.
func TestTwoServicesThatStartAtOnceShareTheirTables(t *testing.T) {
	t.Parallel()
	for _, at := range []payments.Address{{File: filepath.Join(t.TempDir(), "shop.db")}, {Postgres: pgtest.Database(t)}} {
		ready := make(chan struct{})
		errs := make(chan error)
		for range 2 {
			place, err := payments.Open(t.Context(), at)
			must(t, err)
			go func() {
				<-ready
				errs <- errors.Join(place.Migrate(context.Background()), place.Close())
			}()
		}
		close(ready)
		must(t, errors.Join(<-errs, <-errs))
	}
}

// compare says whether every payment is settled or with a person, and the ledgers are equal but
// for those.
func compare(t *testing.T, place *payments.Place, there *psp.Client, n int) (string, bool) {
	t.Helper()
	open, err := place.Store.Breaks(t.Context(), pacht.BreakFilter{Limit: 1000})
	must(t, err)
	person := map[string]bool{}
	for _, b := range open {
		if b.Status != pacht.BreakPerson || b.Class != string(reconcile.AmountDiffers) {
			return fmt.Sprintf("%s: %s %s", b.Reference, b.Class, b.Status), false
		}
		person[b.Reference] = true
	}
	all, err := place.Book.Payments(t.Context(), "", 1000)
	must(t, err)
	for _, p := range all {
		if p.Status == payments.Pending && !person[p.ID] {
			return fmt.Sprintf("%+v is neither settled nor with a person", p), false
		}
	}
	charges, err := there.Charges(t.Context())
	must(t, err)
	theirs := int64(0)
	for _, c := range charges {
		if c.Status == psp.Succeeded && !person[c.Reference] {
			theirs += c.Amount.Minor - c.Refunded - c.ChargedBack
		}
	}
	balances, err := place.Book.Balances(t.Context())
	must(t, err)
	ours := int64(0)
	for _, b := range balances {
		if b.Account == "provider" {
			ours += b.Minor
		}
	}
	sum, err := there.Totals(t.Context())
	must(t, err)
	why := fmt.Sprintf("%d payments, ours %d, theirs %d, %d on their way, %d charged twice, %d with a person", len(all), ours, theirs, sum.Pending, sum.ChargedMore, len(person))
	return why, len(all) == n && ours == theirs && sum.Pending == 0 && sum.ChargedMore == 0 && len(person) > 0
}
