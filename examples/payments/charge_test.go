package payments_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/pachttest"
	"github.com/pacht-queue/pacht/reconcile"
)

func TestPaymentAndItsJobAreCreatedTogetherOrNotAtAll(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		first := s.create("p1")
		if again := s.create("p1"); again != first {
			t.Errorf("created again: job %d, want %d", again, first)
		}
		if _, err := s.book.Create(t.Context(), payments.Payment{ID: "p1", Amount: eur(2000)}); !errors.Is(err, pacht.ErrKeyConflict) {
			t.Errorf("other content under the same id: %v", err)
		}
		if got := s.payment("p1"); got.Amount != eur(1999) || got.Status != payments.Pending {
			t.Errorf("payment %+v", got)
		}
		var invalid *pacht.InvalidError
		for _, p := range []payments.Payment{
			{ID: "", Amount: eur(1)}, {ID: "x", Amount: eur(0)}, {ID: "x", Amount: eur(-1)}, {ID: "x"},
			{ID: "x", Amount: eur(1), Payer: strings.Repeat("x", 101)}, {ID: "x", Amount: eur(1), ChargeWithin: -1},
			{ID: "x", Amount: payments.Payment{}.Amount},
		} {
			if _, err := s.book.Create(t.Context(), p); !errors.As(err, &invalid) {
				t.Errorf("%+v: %v", p, err)
			}
		}
		// A job that is refused takes the payment with it.
		if _, err := s.book.Create(t.Context(), payments.Payment{ID: "x", Amount: eur(1)}, pacht.TTL(time.Millisecond)); !errors.As(err, &invalid) {
			t.Errorf("refused job: %v", err)
		}
		if _, err := s.book.Payment(t.Context(), "x"); !errors.Is(err, pacht.ErrNotFound) {
			t.Errorf("its payment: %v", err)
		}
		if tally := s.tally(); tally.Payments != 1 || tally.Pending != 1 {
			t.Errorf("%+v", tally)
		}
	})
}

// A payment has one job, also when the life of its key is over: a second job would have an effect of
// its own, and charge again. No id collides with the key of another payment's follow-up job.
func TestPaymentHasOneJobForEver(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.scenario("p1", psp.Scenario{Name: psp.TimeoutAfter, Calls: -1})
		job := s.create("p1", pacht.MaxAttempts(1), pacht.KeyLife(time.Second))
		s.work()
		must(t, s.place.Store.Resolve(t.Context(), s.job(job).Ref(), pacht.Resolution{Status: pacht.Dead}, pacht.Act{By: "ann", Reason: "test"}))
		s.until("the key has expired", func() bool {
			_, err := s.book.Create(t.Context(), payments.Payment{ID: "p1", Amount: eur(1999)})
			if err != nil && !errors.Is(err, pacht.ErrKeyConflict) {
				t.Fatal(err)
			}
			return err != nil || s.tally().Pending > 0
		})
		s.work()
		if sum, p := s.totals(), s.payment("p1"); sum.Charges != 1 || p.Amount != eur(1999) || s.tally().Pending != 0 {
			t.Errorf("charged %d times, %+v", sum.Charges, p)
		}
		s.create("receipt:p2")
		if p := s.paid("p2"); s.receipts() != 2 {
			t.Errorf("%d receipts, %+v", s.receipts(), p)
		}
	})
}

// What the provider can do on a call, and what becomes of payment, job and ledger.
func TestChargeIsMadeOnceWhateverTheProviderDoes(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		const taken, nothing = 1999, 0
		for _, c := range []struct {
			scenario string
			status   string
			job      pacht.Status
			ledger   int64
			there    int64
		}{
			{psp.Success, payments.Succeeded, pacht.Completed, taken, 1},
			{psp.Decline, payments.Failed, pacht.Completed, nothing, 0},
			{psp.Slow, payments.Succeeded, pacht.Completed, taken, 1},
			{psp.TooMany, payments.Succeeded, pacht.Completed, taken, 1},
			{psp.TimeoutAfter, payments.Pending, pacht.Stuck, nothing, 1},
			{psp.TimeoutBefore, payments.Pending, pacht.Stuck, nothing, 0},
			{psp.LookupLate, payments.Pending, pacht.Stuck, nothing, 1},
			{psp.KeyForgotten, payments.Pending, pacht.Stuck, nothing, 1},
			{psp.WrongAmount, payments.Pending, pacht.Stuck, nothing, 1},
		} {
			before, ledger := s.totals(), s.balance("provider")
			s.scenario(c.scenario, psp.Scenario{Name: c.scenario, After: 20 * time.Millisecond})
			job := s.create(c.scenario)
			s.work()
			after, p := s.totals(), s.payment(c.scenario)
			if p.Status != c.status || s.job(job).Status != c.job || s.balance("provider")-ledger != c.ledger || after.Charges-before.Charges != c.there {
				t.Errorf("%s: %s, job %s, ledger %d, there %d", c.scenario, p.Status, s.job(job).Status, s.balance("provider")-ledger, after.Charges-before.Charges)
			}
			if after.Repeated != before.Repeated {
				t.Errorf("%s: it was asked again", c.scenario)
			}
			if c.status == payments.Succeeded && p.ChargeID == "" || c.status == payments.Failed && p.Why == "" {
				t.Errorf("%s: %+v", c.scenario, p)
			}
		}
	})
}

// S107: after its time no call is made; what the provider says is written down.
func TestPaymentPastItsTimeIsNotCharged(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		for _, id := range []string{"never", "was"} {
			_, err := s.book.Create(t.Context(), payments.Payment{ID: id, Amount: eur(1999), ChargeWithin: time.Millisecond})
			must(t, err)
		}
		_, err := s.provider.Charge(t.Context(), "by somebody else", psp.Order{Reference: "was", Amount: eur(1999)})
		must(t, err)
		s.until("its time is over", func() bool { return s.payment("was").Expired && s.payment("never").Expired })
		s.work()
		if p := s.payment("never"); p.Status != payments.Failed || !strings.Contains(p.Why, "expired") {
			t.Errorf("%+v", p)
		}
		if p := s.payment("was"); p.Status != payments.Succeeded {
			t.Errorf("%+v", p)
		}
		if sum := s.totals(); sum.Charges != 1 || s.tally().Completed != 2 {
			t.Errorf("%+v, %+v", sum, s.tally())
		}
	})
}

// S107: nor is a call made again after its time, when nothing came of the one in time.
func TestCallWithoutAnAnswerIsNotMadeAgainAfterItsTime(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.scenario("p1", psp.Scenario{Name: psp.TimeoutBefore})
		_, err := s.book.Create(t.Context(), payments.Payment{ID: "p1", Amount: eur(1999), ChargeWithin: 3 * time.Second})
		must(t, err)
		s.work()
		s.until("its time is over", func() bool { return s.payment("p1").Expired })
		s.until("it has failed", func() bool {
			s.reconcile(reconcile.LanePending)
			s.work()
			return s.payment("p1").Status != payments.Pending
		})
		if p := s.payment("p1"); p.Status != payments.Failed || s.totals().Charges != 0 || s.tally().Stuck != 0 {
			t.Errorf("%+v, charged %d times", p, s.totals().Charges)
		}
	})
}

// A payment that was settled before its job came is not charged.
func TestSettledPaymentIsNotChargedAgain(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		_, err := s.book.Apply(t.Context(), payments.News{Charge: happened("", "ch_9", psp.Succeeded).Charge, By: "operator"})
		must(t, err)
		s.work()
		if sum := s.totals(); sum.Charges != 0 || s.payment("p1").ChargeID != "ch_9" || s.tally().Completed != 1 {
			t.Errorf("%+v, %+v", sum, s.payment("p1"))
		}
	})
}

// S100: a holder that died between the intent and the call, or after it, is followed by one that asks.
func TestNextAttemptAsksBeforeItCalls(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		for _, charged := range []bool{true, false} {
			id := map[bool]string{true: "charged", false: "not charged"}[charged]
			job := s.create(id)
			claims, err := s.place.Store.Claim(t.Context(), pacht.ClaimRequest{Owner: "dies", Queue: pacht.DefaultQueue, Kinds: []string{"charge"}, Limit: 1})
			must(t, err)
			begun, err := s.place.Store.BeginEffect(t.Context(), claims.Jobs[0].Ref(), pacht.EffectIntent{Name: "charge", Key: "k " + id, Reference: id})
			must(t, err)
			if !begun.Begun {
				t.Fatalf("%+v", begun)
			}
			if charged {
				_, err := s.provider.Charge(t.Context(), "k "+id, psp.Order{Reference: id, Amount: eur(1999)})
				must(t, err)
			}
			store, ok := s.place.Store.(pachttest.Ager)
			if !ok {
				t.Fatal("the store's times cannot be aged")
			}
			if next := pachttest.Expire(t.Context(), t, store, job); next != pacht.Pending {
				t.Fatalf("%s: %s", id, next)
			}
			// By then the provider must know of the call, if it was made.
			pachttest.Age(t.Context(), t, store, time.Minute)
			s.work()
			if p := s.payment(id); p.Status != payments.Succeeded || s.job(job).Status != pacht.Completed {
				t.Errorf("%s: %+v, job %s", id, p, s.job(job).Status)
			}
		}
		if sum := s.totals(); sum.Charges != 2 || sum.Repeated != 0 || sum.ChargedMore != 0 {
			t.Errorf("%+v", sum)
		}
	})
}

// S106: what was booked is never changed.
func TestLedgerIsAppendOnly(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		s.work()
		schema := ""
		if s.onPostgres() {
			schema = `"The Queue".`
		}
		for _, statement := range []string{
			`UPDATE ` + schema + `entries SET amount_minor = 1`, `DELETE FROM ` + schema + `entries`,
			`UPDATE ` + schema + `transitions SET to_status = 'failed'`, `DELETE FROM ` + schema + `transitions`,
		} {
			if _, err := s.place.DB.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "never changed") {
				t.Errorf("%s: %v", statement, err)
			}
		}
		if s.balance("provider") != 1999 || s.balance("sales") != -1999 {
			t.Errorf("provider %d, sales %d", s.balance("provider"), s.balance("sales"))
		}
	})
}

// Payments and refunds are paged through together, in the order of their bytes: under another
// collation a page would skip some.
func TestIdsAreOrderedByteForByte(t *testing.T) {
	s := newShop(t, payments.Address{Postgres: pgtest.Database(t), Schema: "The Queue"}, psp.Config{})
	rows, err := s.place.DB.QueryContext(t.Context(), `SELECT table_name, column_name, coalesce(collation_name, '') FROM information_schema.columns
		WHERE table_schema = 'The Queue' AND column_name IN ('payment_id', 'refund_id')`)
	must(t, err)
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var table, column, collation string
		must(t, rows.Scan(&table, &column, &collation))
		if collation != "C" {
			t.Errorf("%s.%s has collation %q", table, column, collation)
		}
	}
	if must(t, rows.Err()); n != 6 {
		t.Errorf("%d columns", n)
	}
}

// mendable is a provider that turns calls away until somebody has mended our key.
type mendable struct {
	*psp.Client
	away   *psp.Client
	turned atomic.Int64
	mended atomic.Bool
}

func (m *mendable) now() *psp.Client {
	if m.mended.Load() {
		return m.Client
	}
	m.turned.Add(1)
	return m.away
}

// Charge implements payments.Provider.
func (m *mendable) Charge(ctx context.Context, key string, o psp.Order) (psp.Charge, error) {
	return m.now().Charge(ctx, key, o)
}

// Refund implements payments.Provider.
func (m *mendable) Refund(ctx context.Context, key string, o psp.RefundOrder) (psp.Refund, error) {
	return m.now().Refund(ctx, key, o)
}

// A wrong API key fails no payment and no refund: nothing was done, and they are asked for
// again, each once, when the key is right.
func TestWrongAPIKeyFailsNothing(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.paid("p1")
		must(t, s.askRefund("r1", "p1", 500))
		s.create("p2")
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer srv.Close()
		provider := &mendable{Client: s.provider, away: psp.NewClient(srv.URL, 30*time.Second)}
		defer provider.away.Close()
		var err error
		s.handlers, err = payments.NewHandlers(s.book, provider, s.place.Store, effect.New(s.place.Store), promises)
		must(t, err)
		s.workUntil("both were turned away, and wait", func() bool { return provider.turned.Load() >= 2 })
		if p, r := s.payment("p2"), s.refund("r1"); p.Status != payments.Pending || r.Status != payments.Pending || s.tally().Stuck != 0 {
			t.Errorf("%+v, %+v", p, r)
		}
		provider.mended.Store(true)
		s.work()
		if p, r, sum := s.payment("p2"), s.refund("r1"), s.totals(); p.Status != payments.Succeeded || r.Status != payments.Succeeded || sum.Charges != 2 || sum.Refunds != 1 || sum.Repeated != 0 {
			t.Errorf("%+v, %+v, there %+v", p, r, sum)
		}
	})
}
