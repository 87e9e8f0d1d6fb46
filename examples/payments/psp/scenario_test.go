package psp

import (
	"context"
	"errors"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/money"
)

// told starts a provider and tells it what happens to p1.
func told(t *testing.T, cfg Config, s Scenario) *Client {
	t.Helper()
	cfg.Silence = 50 * time.Millisecond // the provider cuts calls that get no answer
	c := open(t, cfg)
	must(t, c.SetScenario(t.Context(), "p1", s))
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, true func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !true(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func lookup(t *testing.T, c *Client) []Charge {
	t.Helper()
	found, err := c.Lookup(t.Context(), "p1")
	must(t, err)
	return found
}

func TestCallsThatGetNoAnswerWereDoneOrNot(t *testing.T) {
	t.Parallel()
	for _, each := range []struct {
		scenario string
		done     int64
	}{{TimeoutAfter, 1}, {TimeoutBefore, 0}, {KeyForgotten, 1}, {LookupLate, 1}} {
		c := told(t, Config{}, Scenario{Name: each.scenario, After: time.Hour})
		if _, err := c.Charge(t.Context(), "k", charge("p1")); !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s: %v", each.scenario, err)
		}
		if sum := totals(t, c); sum.Charges != each.done {
			t.Errorf("%s: totals %+v", each.scenario, sum)
		}
		// The second call is answered, and nothing is done twice.
		if got, err := c.Charge(t.Context(), "k", charge("p1")); err != nil || got.Status != Succeeded {
			t.Errorf("%s: second call: %+v, %v", each.scenario, got, err)
		}
		if sum := totals(t, c); sum.Charges != 1 {
			t.Errorf("%s: totals %+v", each.scenario, sum)
		}
	}
}

func TestScenarioOfAllCallsNeverAnswers(t *testing.T) {
	t.Parallel()
	c := told(t, Config{}, Scenario{Name: TimeoutBefore, Calls: -1})
	for range 3 {
		if _, err := c.Charge(t.Context(), "k", charge("p1")); !errors.Is(err, ErrUnanswered) {
			t.Error(err)
		}
	}
}

func TestForgottenKeyIsChargedAgain(t *testing.T) {
	t.Parallel()
	c := told(t, Config{}, Scenario{Name: KeyForgotten, After: time.Millisecond})
	_, err := c.Charge(t.Context(), "k", charge("p1"))
	if !errors.Is(err, ErrUnanswered) {
		t.Error(err)
	}
	if _, err := c.Charge(t.Context(), "k", charge("p1")); err != nil {
		t.Error(err)
	}
	if sum := totals(t, c); sum.Charges != 2 || sum.ChargedMore != 1 {
		t.Errorf("totals %+v", sum)
	}
}

func TestTooManyAndUnreachableSayThatNothingWasDone(t *testing.T) {
	t.Parallel()
	c := told(t, Config{}, Scenario{Name: TooMany, After: 1500 * time.Millisecond})
	_, err := c.Charge(t.Context(), "k", charge("p1"))
	if !errors.Is(err, ErrBusy) || RetryAfter(err) != 2*time.Second {
		t.Errorf("%v, after %s", err, RetryAfter(err))
	}
	if _, err := c.Charge(t.Context(), "k", charge("p1")); err != nil {
		t.Error(err)
	}
	nobody := NewClient("http://127.0.0.1:1", time.Second)
	defer nobody.Close()
	if _, err := nobody.Charge(t.Context(), "k", charge("p1")); !errors.Is(err, ErrNotSent) || errors.Is(err, ErrUnanswered) {
		t.Error(err)
	}
}

func TestLookupFindsItLate(t *testing.T) {
	t.Parallel()
	c := told(t, Config{}, Scenario{Name: LookupLate, After: time.Second})
	began := time.Now()
	_, err := c.Charge(t.Context(), "k", charge("p1"))
	if !errors.Is(err, ErrUnanswered) {
		t.Error(err)
	}
	if found := lookup(t, c); len(found) != 0 && time.Since(began) < time.Second {
		t.Errorf("found %+v", found)
	}
	until(t, "it is found", func() bool { return len(lookup(t, c)) == 1 })
	if time.Since(began) < time.Second {
		t.Errorf("found after %s", time.Since(began))
	}
}

// S104: what was taken is another amount, or cannot be read; neither is taken for the right one.
func TestWrongAmountsAreTakenOrToldAndGarbageIsSeen(t *testing.T) {
	t.Parallel()
	for _, each := range []struct {
		variant string
		want    money.Amount
		err     error
	}{
		{Lower, money.Amount{Minor: 1150, Currency: "EUR"}, nil},
		{Higher, money.Amount{Minor: 1350, Currency: "EUR"}, nil},
		{OtherCurrency, money.Amount{Minor: 1250, Currency: "USD"}, nil},
		{Null, money.Amount{}, ErrGarbage},
		{Missing, money.Amount{}, ErrGarbage},
		{Decimal, money.Amount{}, ErrGarbage},
		{Stranger, money.Amount{Minor: 1250, Currency: "EUR"}, ErrGarbage},
	} {
		c := told(t, Config{}, Scenario{Name: WrongAmount, Variant: each.variant})
		got, err := c.Charge(t.Context(), "k", charge("p1"))
		if !errors.Is(err, each.err) || got.Amount != each.want {
			t.Errorf("%s: %+v, %v", each.variant, got, err)
		}
		if _, err := c.Lookup(t.Context(), "p1"); !errors.Is(err, each.err) {
			t.Errorf("%s: look-up: %v", each.variant, err)
		}
		// Asked again it is the same call, not a conflict.
		if _, err := c.Charge(t.Context(), "k", charge("p1")); errors.Is(err, ErrConflict) {
			t.Errorf("%s: again: %v", each.variant, err)
		}
		page, _, err := c.List(t.Context(), time.Time{}, "")
		if err != nil || len(page) != 1 || each.err != nil && each.variant != Stranger && (page[0].Status != "" || page[0].ID == "") {
			t.Errorf("%s: list %+v, %v", each.variant, page, err)
		}
	}
}

// S105
func TestRefundsAreIdempotentAndNeverMoreThanWasTaken(t *testing.T) {
	t.Parallel()
	c := open(t, Config{})
	made, err := c.Charge(t.Context(), "k", charge("p1"))
	must(t, err)
	eur := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "EUR"} }
	order := RefundOrder{Reference: "r1", Charge: made.ID, Amount: eur(500)}
	first, err := c.Refund(t.Context(), "kr", order)
	must(t, err)
	if again, err := c.Refund(t.Context(), "kr", order); err != nil || again != first {
		t.Errorf("%+v, %+v, %v", first, again, err)
	}
	if there, err := c.DashboardRefund(t.Context(), made.ID, eur(700)); err != nil || there.Reference != "" {
		t.Errorf("%+v, %v", there, err)
	}
	for _, o := range []RefundOrder{
		{Reference: "r2", Charge: made.ID, Amount: eur(51)},
		{Reference: "r3", Charge: "ch_9", Amount: eur(1)},
		{Reference: "r4", Charge: made.ID, Amount: money.Amount{Minor: 1, Currency: "USD"}},
		{Reference: "r5", Charge: made.ID, Amount: eur(0)},
	} {
		if _, err := c.Refund(t.Context(), o.Reference, o); !errors.Is(err, ErrRefused) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	must(t, c.Chargeback(t.Context(), made.ID))
	got := lookup(t, c)[0]
	if got.Refunded != 1200 || got.ChargedBack != 50 || len(got.Refunds) != 2 {
		t.Errorf("%+v", got)
	}
	if sum := totals(t, c); sum.Net("EUR") != 0 || sum.Refunds != 2 || sum.Chargebacks != 1 || sum.Repeated != 1 {
		t.Errorf("totals %+v", sum)
	}
	if found, err := c.Refunds(t.Context(), "r1"); err != nil || len(found) != 1 || found[0] != first {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestListHasAStableCursorAndSaysWhenItHasShifted(t *testing.T) {
	t.Parallel()
	c := open(t, Config{})
	must(t, c.SetScenario(t.Context(), "late", Scenario{Name: ListShift, After: time.Hour}))
	for _, ref := range []string{"early", "late"} {
		_, err := c.Charge(t.Context(), ref, charge(ref))
		must(t, err)
	}
	for i := range mostListed + 20 {
		key := "k" + strings.Repeat("i", i)
		_, err := c.Charge(t.Context(), key, charge(key))
		must(t, err)
	}
	page, cursor, err := c.List(t.Context(), time.Time{}, "")
	must(t, err)
	if len(page) != mostListed || page[1].Reference == "late" {
		t.Fatalf("%d on the first page, the second is %s", len(page), page[1].Reference)
	}
	rest, next, err := c.List(t.Context(), time.Time{}, cursor)
	if err != nil || len(rest) != 21 || next != "" {
		t.Fatalf("%d on the second page, %q, %v", len(rest), next, err)
	}
	must(t, c.SetScenario(t.Context(), "late", Scenario{Name: ListShift, After: time.Nanosecond}))
	if _, _, err := c.List(t.Context(), time.Time{}, cursor); !errors.Is(err, ErrConflict) {
		t.Errorf("the second page of a list that has shifted: %v", err)
	}
	all, err := c.Charges(t.Context())
	if err != nil || len(all) != mostListed+22 || all[1].Reference != "late" {
		t.Errorf("%d charges, %v", len(all), err)
	}
}

// A provider that was stopped goes on with what it had accepted, and knows its scenarios.
func TestRestartedProviderGoesOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	t.Run("first run", func(t *testing.T) {
		c := told(t, Config{Ledger: path}, Scenario{Name: WebhookLost, After: 100 * time.Millisecond})
		if got, err := c.Charge(t.Context(), "k", charge("p1")); err != nil || got.Status != Pending {
			t.Errorf("%+v, %v", got, err)
		}
	})
	c := open(t, Config{Ledger: path})
	until(t, "it is captured", func() bool { return totals(t, c).Charges == 1 })
	if got, err := c.Charge(t.Context(), "k", charge("p1")); err != nil || got.Status != Succeeded {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSameSeedDrawsTheSameScenarios(t *testing.T) {
	t.Parallel()
	mix := map[string]int{}
	for _, name := range Scenarios() {
		mix[name] = 1
	}
	a, b := Config{Seed: 3, Mix: mix}, Config{Seed: 4, Mix: mix}
	drawn, others := map[string]bool{}, 0
	for i := range 400 {
		ref := strings.Repeat("x", i)
		first := a.Draw(ref)
		if first != a.Draw(ref) {
			t.Fatal("two scenarios for one reference")
		}
		if first != b.Draw(ref) {
			others++
		}
		drawn[first.Name] = true
	}
	if got := slices.Sorted(maps.Keys(drawn)); !slices.Equal(got, Scenarios()) || others == 0 {
		t.Errorf("drawn %v; %d differ with another seed", got, others)
	}
	if _, err := Open(Config{Ledger: filepath.Join(t.TempDir(), "l"), Mix: map[string]int{"rain": 1}}); err == nil {
		t.Error("an unknown scenario is taken")
	}
}

// A provider that is closed while something is still to come waits for nobody.
func TestCloseEndsWhatWasToCome(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{Ledger: filepath.Join(t.TempDir(), "l"), Delay: time.Hour, Mix: map[string]int{WebhookLost: 1}})
	must(t, err)
	srv := httptest.NewServer(s)
	c := NewClient(srv.URL, time.Second)
	_, err = c.Charge(context.Background(), "k", charge("p1"))
	must(t, err)
	c.Close()
	srv.Close()
	must(t, s.Close())
}
