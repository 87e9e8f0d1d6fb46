package psp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht/money"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts a provider over real HTTP.
func open(t *testing.T, cfg Config) *Client {
	t.Helper()
	if cfg.Ledger == "" {
		cfg.Ledger = filepath.Join(t.TempDir(), "ledger.jsonl")
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, func(u string) error { url <- u; return nil })
	}()
	c := NewClient(<-url, 5*time.Second)
	t.Cleanup(func() {
		c.Close()
		stop()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func charge(ref string) Order {
	return Order{Reference: ref, Amount: money.Amount{Minor: 1250, Currency: "EUR"}}
}

func totals(t *testing.T, c *Client) Totals {
	t.Helper()
	sum, err := c.Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestSameKeyIsChargedOnceHoweverManyAskAtOnce(t *testing.T) {
	c := open(t, Config{Latency: 2 * time.Millisecond})
	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		wg.Go(func() {
			e, err := c.Charge(t.Context(), "k", charge("p1"))
			if err != nil {
				t.Error(err)
			}
			ids[i] = e.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("two answers for one key: %s and %s", id, ids[0])
		}
	}
	if sum := totals(t, c); sum.Charges != 1 || sum.Repeated != 19 || sum.ChargedMore != 0 || sum.Charged["EUR"] != 1250 {
		t.Errorf("totals %+v", sum)
	}
}

func TestOtherBodyUnderTheSameKeyIsRefusedAndChargesNothing(t *testing.T) {
	c := open(t, Config{})
	if _, err := c.Charge(t.Context(), "k", charge("p1")); err != nil {
		t.Fatal(err)
	}
	other := charge("p1")
	other.Amount.Minor++
	if _, err := c.Charge(t.Context(), "k", other); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "409") {
		t.Errorf("got %v", err)
	}
	if sum := totals(t, c); sum.Charges != 1 || sum.Repeated != 0 {
		t.Errorf("totals %+v", sum)
	}
}

func TestFailureBeforeTheChargeChargesNothing(t *testing.T) {
	c := open(t, Config{FailRate: 1})
	if _, err := c.Charge(t.Context(), "k", charge("p1")); !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
	if sum := totals(t, c); sum.Charges != 0 {
		t.Errorf("totals %+v", sum)
	}
}

// The gap: charged, and nobody heard of it. Both ways of losing the answer occur.
func TestLostAnswerWasChargedAndCanBeLookedUp(t *testing.T) {
	c := open(t, Config{LoseRate: 1, Seed: 1})
	cut, gateway := 0, 0
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		_, err := c.Charge(t.Context(), key, charge("p-"+key))
		switch {
		case !errors.Is(err, ErrUnanswered):
			t.Fatalf("key %s: got %v", key, err)
		case strings.Contains(err.Error(), "502"):
			gateway++
		default:
			cut++
		}
		found, err := c.Lookup(t.Context(), "p-"+key)
		if err != nil || len(found) != 1 || found[0].Amount != charge("p-"+key).Amount || found[0].Status != Succeeded {
			t.Errorf("look-up of %s: %+v, %v", key, found, err)
		}
	}
	if cut == 0 || gateway == 0 {
		t.Errorf("%d connections cut, %d times 502: want some of both", cut, gateway)
	}
	// Nothing of it was sent twice behind the caller's back.
	if sum := totals(t, c); sum.Charges != 8 || sum.Repeated != 0 {
		t.Errorf("totals %+v", sum)
	}
	if found, err := c.Lookup(t.Context(), "never"); err != nil || len(found) != 0 {
		t.Errorf("look-up of nothing: %+v, %v", found, err)
	}
}

func TestDeclinedStaysDeclined(t *testing.T) {
	c := open(t, Config{DeclineRate: 1})
	for range 2 {
		if _, err := c.Charge(t.Context(), "k", charge("p1")); !errors.Is(err, ErrDeclined) {
			t.Errorf("got %v", err)
		}
	}
	if sum := totals(t, c); sum.Charges != 0 || sum.Declined != 1 {
		t.Errorf("totals %+v", sum)
	}
}

func TestIgnoredKeysChargeTwice(t *testing.T) {
	c := open(t, Config{IgnoreKeys: true})
	for range 2 {
		if _, err := c.Charge(t.Context(), "k", charge("p1")); err != nil {
			t.Fatal(err)
		}
	}
	if sum := totals(t, c); sum.Charges != 2 || sum.ChargedMore != 1 {
		t.Errorf("totals %+v", sum)
	}
}

func TestHeldAnswersComeAfterTheRelease(t *testing.T) {
	c := open(t, Config{HoldAnswers: true, FreeAnswers: 1})
	if _, err := c.Charge(t.Context(), "k1", charge("p1")); err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() {
		_, err := c.Charge(context.Background(), "k2", charge("p2"))
		held <- err
	}()
	// It is charged, and its answer waits.
	for deadline := time.Now().Add(5 * time.Second); totals(t, c).Charges < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the held call was never charged")
		}
	}
	select {
	case err := <-held:
		t.Fatalf("answered while held: %v", err)
	default:
	}
	// Whoever had an answer gets it again.
	if _, err := c.Charge(t.Context(), "k1", charge("p1")); err != nil {
		t.Error(err)
	}
	if err := c.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

func TestLedgerIsReadAgainAndATornLineIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	t.Run("first run", func(t *testing.T) {
		c := open(t, Config{Ledger: path})
		if _, err := c.Charge(t.Context(), "k", charge("p1")); err != nil {
			t.Fatal(err)
		}
	})
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"what":"charge","id":"ch_0`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c := open(t, Config{Ledger: path})
	e, err := c.Charge(t.Context(), "k", charge("p1"))
	if err != nil || e.ID != "ch_000001" {
		t.Errorf("answer %+v, %v", e, err)
	}
	if sum := totals(t, c); sum.Charges != 1 || sum.Repeated != 1 {
		t.Errorf("totals %+v", sum)
	}
	all, err := c.Charges(t.Context())
	if err != nil || len(all) != 1 {
		t.Errorf("charges %+v, %v", all, err)
	}
}

func TestBadRequestsChargeNothing(t *testing.T) {
	s, err := Open(Config{Ledger: filepath.Join(t.TempDir(), "l")})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	good := `{"reference":"p","amount":{"amount_minor":1,"currency":"EUR"}}`
	for _, c := range []struct {
		key, body string
		want      int
	}{
		{"", good, 400},
		{strings.Repeat("k", 256), good, 400},
		{"k", `{`, 400},
		{"k", good + good, 400},
		{"k", `{"reference":"p","amount":{"amount_minor":1.5,"currency":"EUR"}}`, 400},
		{"k", `{"reference":"p","amount":{"amount_minor":1,"currency":"EUR"},"more":1}`, 400},
		{"k", `{"reference":"p","amount":{"amount_minor":1,"currency":"EURO"}}`, 400},
		{"k", `{"reference":"p","amount":null}`, 400},
		{"k", `{"reference":"p"}`, 422},
		{"k", `{"reference":"p","amount":{"amount_minor":0,"currency":"EUR"}}`, 422},
		{"k", `{"reference":"p","amount":{"amount_minor":-1,"currency":"EUR"}}`, 422},
		{"k", `{"reference":"","amount":{"amount_minor":1,"currency":"EUR"}}`, 422},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/charges", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", c.key)
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.want {
			t.Errorf("%q %s: %d %s, want %d", c.key, c.body, res.StatusCode, said, c.want)
		}
	}
	if sum := s.ledger.account.totals; sum.Charges != 0 {
		t.Errorf("totals %+v", sum)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A run can be repeated: the fate of a call hangs on seed, key and its number alone.
func TestSameSeedGivesTheSameFates(t *testing.T) {
	cfg := Config{Seed: 7, Latency: time.Second, FailRate: 0.3, LoseRate: 0.3, DeclineRate: 0.3}
	a := fates{cfg: cfg, seen: map[string]int{}}
	b := fates{cfg: cfg, seen: map[string]int{}}
	b.of("other")
	different := map[fate]bool{}
	for range 5 {
		x, y := a.of("k"), b.of("k")
		if x != y {
			t.Fatalf("%+v and %+v", x, y)
		}
		different[x] = true
	}
	if len(different) < 2 {
		t.Error("every call has the same fate")
	}
}
