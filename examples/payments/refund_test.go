package payments_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

func (s *shop) paid(id string) payments.Payment {
	s.t.Helper()
	s.create(id)
	s.work()
	p := s.payment(id)
	if p.Status != payments.Succeeded {
		s.t.Fatalf("%+v", p)
	}
	return p
}

func (s *shop) askRefund(id, payment string, minor int64) error {
	return s.book.AskRefund(s.t.Context(), payments.Refund{ID: id, PaymentID: payment, Amount: eur(minor)})
}

func (s *shop) refund(id string) payments.Refund {
	s.t.Helper()
	r, err := s.book.Refund(s.t.Context(), id)
	must(s.t, err)
	return r
}

// S105: refunds are rows of their own; those made at the provider's side are added by their id;
// more than was taken is refused.
func TestRefundsOfBothSidesAddUp(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		p := s.paid("p1") // 19.99; in the case 100, of which 30 and 20 were given back there
		for _, n := range []int64{600, 400} {
			_, err := s.provider.DashboardRefund(t.Context(), p.ChargeID, eur(n))
			must(t, err)
		}
		// Their webhooks are lost, so 12.00 look possible here. The provider refuses.
		must(t, s.askRefund("r1", "p1", 1200))
		if err := s.askRefund("r2", "p1", 800); !errors.Is(err, payments.ErrRefund) {
			t.Errorf("more than is left while 12.00 are on their way: %v", err)
		}
		s.work()
		if r := s.refund("r1"); r.Status != payments.Failed || r.Why == "" {
			t.Errorf("%+v", r)
		}
		// The reconciler finds what was given back there.
		s.reconcile(reconcile.LaneSettled)
		if p := s.payment("p1"); p.Refunded != 1000 || p.Shown() != "partially_refunded" {
			t.Errorf("%+v, breaks %v", p, s.breaks())
		}
		if err := s.askRefund("r3", "p1", 1000); !errors.Is(err, payments.ErrRefund) {
			t.Errorf("more than is left: %v", err)
		}
		must(t, s.askRefund("r4", "p1", 999))
		s.work()
		s.reconcile(reconcile.LaneSettled)
		if p := s.payment("p1"); p.Refunded != 1999 || p.Refunding != 0 || p.Shown() != "refunded" || s.refund("r4").Status != payments.Succeeded {
			t.Errorf("%+v", p)
		}
		sum := s.totals()
		if s.balance("provider") != 0 || s.balance("refunds") != 1999 || sum.Net("EUR") != 0 || sum.Refunds != 3 || len(s.breaks()) != 0 {
			t.Errorf("provider %d, refunds %d, there %+v, breaks %v", s.balance("provider"), s.balance("refunds"), sum, s.breaks())
		}
		for name, err := range map[string]error{
			"none left": s.askRefund("r5", "p1", 1), "no payment": s.askRefund("r6", "p2", 1), "nothing": s.askRefund("r7", "p1", 0), "no id": s.askRefund("", "p1", 1),
		} {
			if err == nil {
				t.Errorf("%s: it was taken", name)
			}
		}
	})
}

// S100: the provider gives back and drops the answer. However often the job is tried again, it
// asks and does not give back twice; and what became of it is unknown until it is known.
func TestRefundWithoutAnAnswerIsNotGivenBackTwice(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.paid("p1")
		s.scenario("r1", psp.Scenario{Name: psp.TimeoutAfter, Calls: -1})
		must(t, s.askRefund("r1", "p1", 500))
		s.work()
		jobs, err := s.place.Store.Jobs(t.Context(), pacht.Filter{Status: pacht.Stuck, Limit: 10})
		must(t, err)
		if len(jobs) != 1 || s.refund("r1").Status != payments.Pending || s.balance("refunds") != 0 {
			t.Fatalf("%+v, %+v", jobs, s.refund("r1"))
		}
		s.reconcile(reconcile.LanePending)
		if r := s.refund("r1"); r.Status != payments.Succeeded || r.ProviderID == "" || s.balance("refunds") != 500 || s.job(jobs[0].ID).Status != pacht.Completed {
			t.Errorf("%+v, %d booked, job %s, breaks %v", r, s.balance("refunds"), s.job(jobs[0].ID).Status, s.breaks())
		}
		if sum := s.totals(); sum.Refunds != 1 || sum.Repeated != 0 {
			t.Errorf("%+v", sum)
		}
	})
}

// A refund that the provider never got is asked for again, under the same key, once it would know of it.
func TestRefundThatWasNeverMadeIsMadeAfterAll(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.paid("p1")
		s.scenario("r1", psp.Scenario{Name: psp.TimeoutBefore})
		must(t, s.askRefund("r1", "p1", 500))
		s.work()
		s.until("it is made", func() bool {
			s.reconcile(reconcile.LanePending)
			s.work()
			return s.refund("r1").Status == payments.Succeeded
		})
		if sum := s.totals(); sum.Refunds != 1 || s.balance("refunds") != 500 {
			t.Errorf("%+v", sum)
		}
	})
}

func TestDeclinedRefundFailsAndFreesItsAmount(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.paid("p1")
		s.scenario("r1", psp.Scenario{Name: psp.Decline})
		must(t, s.askRefund("r1", "p1", 1999))
		s.work()
		if r, p := s.refund("r1"), s.payment("p1"); r.Status != payments.Failed || p.Refunding != 0 || s.balance("refunds") != 0 {
			t.Errorf("%+v, %+v", r, p)
		}
		must(t, s.askRefund("r2", "p1", 1999))
	})
}

func TestChargebackIsBookedOnceFromWebhookOrReconciler(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		p := s.paid("p1")
		must(t, s.askRefund("r1", "p1", 500))
		s.work()
		must(t, s.provider.Chargeback(t.Context(), p.ChargeID)) // no webhook: it is lost
		s.reconcile(reconcile.LaneSettled)
		s.webhooks()
		must(t, s.provider.Chargeback(t.Context(), p.ChargeID))
		if p := s.payment("p1"); p.Status != payments.ChargedBack || s.balance("chargebacks") != 1499 || s.balance("provider") != 0 {
			t.Errorf("%+v, chargebacks %d, provider %d, breaks %v", p, s.balance("chargebacks"), s.balance("provider"), s.breaks())
		}
		if err := s.askRefund("r2", "p1", 1); !errors.Is(err, payments.ErrRefund) {
			t.Errorf("refund of a payment that was charged back: %v", err)
		}
	})
}

// S105: the webhooks of the parts are lost, or come after the reconciler has found them.
func TestPartialChargebacksAreBookedFromWebhookOrReconciler(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		p := s.paid("p1")
		same := func(what string, back, refunded int64) {
			t.Helper()
			sum := s.totals()
			if p := s.payment("p1"); p.Status != payments.ChargedBack || p.ChargedBack != back || p.Refunded != refunded || s.balance("chargebacks") != back ||
				s.balance("provider") != sum.Net("EUR") || sum.ChargedBack["EUR"] != back {
				t.Errorf("%s: %+v, booked %d, provider %d, there %+v, breaks %v", what, p, s.balance("chargebacks"), s.balance("provider"), sum, s.breaks())
			}
		}
		must(t, s.provider.ChargebackPart(t.Context(), p.ChargeID, eur(500)))
		s.reconcile(reconcile.LaneSettled)
		same("a part", 500, 0)
		must(t, s.provider.ChargebackPart(t.Context(), p.ChargeID, eur(300)))
		s.reconcile(reconcile.LaneSettled)
		same("one more", 800, 0)
		s.webhooks()
		must(t, s.provider.ChargebackPart(t.Context(), p.ChargeID, eur(199)))
		s.until("the webhook is there", func() bool { return s.payment("p1").ChargedBack == 999 })
		must(t, s.provider.ChargebackPart(t.Context(), p.ChargeID, eur(1)))
		s.until("its successor too", func() bool { return s.payment("p1").ChargedBack == 1000 })
		_, err := s.provider.DashboardRefund(t.Context(), p.ChargeID, eur(600)) // of what is left
		must(t, err)
		s.until("the refund too", func() bool { return s.payment("p1").Refunded == 600 })
		s.reconcile(reconcile.LaneSettled)
		same("in the end", 1000, 600)
		if len(s.breaks()) != 0 {
			t.Errorf("breaks %v", s.breaks())
		}
	})
}

// S105: the bank takes back what was refunded already. That is money lost, which nothing here can
// write down: a person gets it at once, whoever has learnt of it, and nothing is tried for ever.
func TestMoreThanWasTakenComingBackIsABreakAndChangesNothing(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		p := s.paid("p1")
		must(t, s.askRefund("r1", "p1", 1500))
		s.work()
		must(t, s.provider.ChargebackPart(t.Context(), p.ChargeID, eur(500))) // 1 too many
		s.reconcile(reconcile.LaneSettled)
		there, err := s.provider.Lookup(t.Context(), "p1")
		must(t, err)
		status, got := s.event(psp.Event{ID: "evt_over", Type: "charge.charged_back", Created: time.Now().UTC(), Charge: there[0]})
		if status != http.StatusOK || got.Verdict != payments.Break {
			t.Errorf("%d, %+v", status, got)
		}
		if p := s.payment("p1"); p.Status != payments.Succeeded || p.ChargedBack != 0 || p.Refunded != 1500 || s.balance("chargebacks") != 0 {
			t.Errorf("%+v, booked %d", p, s.balance("chargebacks"))
		}
		if got := s.breaks(); len(got) != 1 || got["p1"] != string(reconcile.AmountDiffers)+" "+string(pacht.BreakPerson) {
			t.Errorf("breaks %v", got)
		}

		// The other way round: a refund whose answer was lost, and then all is taken back.
		q := s.paid("p2")
		s.scenario("r2", psp.Scenario{Name: psp.TimeoutAfter, Calls: -1})
		must(t, s.askRefund("r2", "p2", 400))
		s.work()
		news := payments.News{Charge: psp.Charge{ID: q.ChargeID, Reference: "p2", Status: psp.Succeeded, Amount: eur(1999), ChargedBack: 1999}, By: "bank"}
		_, err = s.book.Apply(t.Context(), news)
		must(t, err)
		s.reconcile(reconcile.LanePending)
		if r := s.refund("r2"); r.Status != payments.Pending || s.payment("p2").ChargedBack != 1999 || s.breaks()["r2"] != string(reconcile.PaidThere)+" "+string(pacht.BreakPerson) {
			t.Errorf("%+v, %+v, breaks %v", r, s.payment("p2"), s.breaks())
		}
	})
}

// S105: the payer's bank takes the money back while a refund waits. It is not given back as well,
// whether the refund was never asked for or the provider does not know of it.
func TestRefundOfWhatWasChargedBackMeanwhileIsNotAskedFor(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		lost := s.paid("p1")
		s.scenario("asked", psp.Scenario{Name: psp.TimeoutBefore})
		must(t, s.askRefund("asked", "p1", 500))
		s.work() // nobody knows what came of it
		must(t, s.askRefund("waits", "p1", 400))
		// Our bank tells us before the provider knows of it, so it would pay.
		news := payments.News{Charge: psp.Charge{ID: lost.ChargeID, Reference: "p1", Status: psp.Succeeded, Amount: eur(1999), ChargedBack: 1999}, By: "bank"}
		_, err := s.book.Apply(t.Context(), news)
		must(t, err)
		s.until("both have failed", func() bool {
			s.reconcile(reconcile.LanePending)
			s.work()
			return s.refund("asked").Status == payments.Failed && s.refund("waits").Status == payments.Failed
		})
		if sum := s.totals(); sum.Refunds != 0 || s.balance("refunds") != 0 || s.payment("p1").Refunding != 0 {
			t.Errorf("given back there: %d, booked %d", sum.Refunds, s.balance("refunds"))
		}
	})
}

// S105: a bank takes money back in parts, and what it tells may come in any order, twice, or not at
// all. Each unit is booked once, and what is left of it is not given back once more.
func TestChargebacksOfOnePaymentAddUpWhoeverTellsOfThem(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		p := s.paid("p1")
		told := func(total int64) payments.Verdict {
			t.Helper()
			v, err := s.book.Apply(t.Context(), payments.News{Charge: psp.Charge{ID: p.ChargeID, Reference: "p1", Status: psp.Succeeded, Amount: eur(1999), ChargedBack: total}, By: "bank"})
			must(t, err)
			return v
		}
		for i, c := range []struct {
			total, booked int64
			verdict       string
		}{{500, 500, payments.Applied}, {500, 500, payments.Ignored}, {1200, 1200, payments.Applied}, {700, 1200, payments.Ignored}, {0, 1200, payments.Ignored}, {1999, 1999, payments.Applied}} {
			if v := told(c.total); v.Verdict != c.verdict || s.balance("chargebacks") != c.booked || s.balance("provider") != 1999-c.booked {
				t.Errorf("%d, told of %d: %s (%s), booked %d, provider %d", i, c.total, v.Verdict, v.Why, s.balance("chargebacks"), s.balance("provider"))
			}
		}
	})
}
