package payments_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
)

// S095: the provider captures and drops all webhooks. However old they are, all are settled, by
// the same transition.
func TestPaymentsWhoseWebhooksAreLostAreSettledHoweverOld(t *testing.T) {
	each(t, psp.Config{Mix: map[string]int{psp.WebhookLost: 1}, Delay: time.Millisecond}, func(t *testing.T, s *shop) {
		const n = 100
		for i := range n {
			s.create(fmt.Sprintf("p%03d", i))
		}
		s.work()
		for i := range n {
			s.age(fmt.Sprintf("p%03d", i), time.Minute+time.Duration(i)*4*24*time.Hour)
		}
		if tally := s.tally(); tally.Unpaid != n || tally.OldestPending < 390*24*time.Hour {
			t.Errorf("%+v", tally)
		}
		s.until("the provider has them all", func() bool { return s.totals().Charges == n })
		report := s.reconcile(reconcile.LanePending)
		if tally := s.tally(); tally.Paid != n || tally.Unpaid != 0 || report.Healed != n {
			t.Errorf("%+v, healed %d, breaks %v", tally, report.Healed, s.breaks())
		}
		if s.balance("provider") != n*1999 || s.totals().Net("EUR") != n*1999 || s.receipts() != n || len(s.breaks()) != 0 {
			t.Errorf("%d booked, %d receipts, breaks %v", s.balance("provider"), s.receipts(), s.breaks())
		}
	})
}

// S096: pages of pending records, of payments and refunds together, pass over nothing, whatever
// their ids are.
func TestPagesOfPendingRecordsPassOverNothing(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.paid("paid")
		var want []string
		for _, id := range []string{"B", "_c", "a", "z", "Z9", "é"} {
			_, err := s.book.Create(t.Context(), payments.Payment{ID: id, Amount: eur(1999)}, pacht.RunIn(time.Hour))
			must(t, err)
			refund := "b" + id
			must(t, s.askRefund(refund, "paid", 1))
			want = append(want, id, refund)
		}
		slices.Sort(want)
		s.until("they are old enough", func() bool {
			all, err := payments.Ours{Book: s.book}.Pending(t.Context(), time.Millisecond, "", 100)
			must(t, err)
			return len(all) == len(want)
		})
		for _, limit := range []int{1, 2, 5} {
			var got []string
			for after := ""; ; after = got[len(got)-1] {
				page, err := payments.Ours{Book: s.book}.Pending(t.Context(), time.Millisecond, after, limit)
				must(t, err)
				if len(page) == 0 {
					break
				}
				for _, r := range page {
					got = append(got, r.Reference)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("by %d: %q, want %q", limit, got, want)
			}
		}
	})
}

// S096, S103: both directions are compared, also rows that the provider never heard of and rows
// that have no job behind them; each break has its class.
func TestBothDirectionsAreComparedAndNothingIsPassedOver(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		// Paid here, and the provider knows nothing.
		_, err := s.book.Create(t.Context(), payments.Payment{ID: "p1", Amount: eur(1999)}, pacht.RunIn(time.Hour))
		must(t, err)
		_, err = s.book.Apply(t.Context(), payments.News{Charge: happened("", "ch_9", psp.Succeeded).Charge, By: "operator"})
		must(t, err)
		// Pending here for days, and no job does anything about it.
		id := s.create("no job")
		_, err = s.place.Store.Cancel(t.Context(), id, pacht.Act{By: "ann", Reason: "test"})
		must(t, err)
		s.age("no job", 3*24*time.Hour)
		// There, and not here.
		_, err = s.provider.Charge(t.Context(), "k", psp.Order{Reference: "stranger", Amount: eur(500)})
		must(t, err)

		s.reconcile(reconcile.LanePending)
		s.reconcile(reconcile.LaneSettled)
		s.until("the stranger is old enough to be looked at", func() bool {
			s.reconcile(reconcile.LaneList)
			return s.breaks()["stranger"] != ""
		})
		open := s.breaks()
		for reference, want := range map[string]string{
			"p1":       string(reconcile.MissingThere) + " waiting",
			"no job":   string(reconcile.MissingThere) + " waiting",
			"stranger": string(reconcile.MissingHere) + " person",
		} {
			if open[reference] != want {
				t.Errorf("%s: %q, want %q", reference, open[reference], want)
			}
		}
		// What waits ends with a person, and not in silence.
		s.until("all are with a person", func() bool {
			s.reconcile(reconcile.LanePending)
			s.reconcile(reconcile.LaneSettled)
			open := s.breaks()
			return open["p1"] == string(reconcile.MissingThere)+" person" && open["no job"] == string(reconcile.MissingThere)+" person"
		})
		if s.payment("no job").Status != payments.Pending || s.payment("p1").Status != payments.Succeeded {
			t.Errorf("silence resolved something: %+v, %+v", s.payment("no job"), s.payment("p1"))
		}
	})
}

// Money that was taken after we had given up is found in the provider's list, and written down as a
// late success; and a payment that the provider declined behind our back fails.
func TestReconcilerFindsLateSuccessesAndSilentDeclines(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		for _, id := range []string{"late", "declined"} {
			_, err := s.book.Create(t.Context(), payments.Payment{ID: id, Amount: eur(1999)}, pacht.RunIn(time.Hour))
			must(t, err)
		}
		_, err := s.book.Apply(t.Context(), payments.News{Charge: psp.Charge{Reference: "late", Status: psp.Failed}, By: "operator ann", Why: "given up"})
		must(t, err)
		_, err = s.provider.Charge(t.Context(), "k1", psp.Order{Reference: "late", Amount: eur(1999)})
		must(t, err)
		s.scenario("declined", psp.Scenario{Name: psp.Decline})
		if _, err := s.provider.Charge(t.Context(), "k2", psp.Order{Reference: "declined", Amount: eur(1999)}); err == nil {
			t.Error("it was not declined")
		}
		s.age("declined", time.Hour)
		s.reconcile(reconcile.LanePending)
		s.until("the list is old enough to be looked at", func() bool {
			s.reconcile(reconcile.LaneList)
			return s.payment("late").Status == payments.Succeeded
		})
		history, err := s.book.Transitions(t.Context(), "late")
		must(t, err)
		if len(history) != 2 || history[1].By != "reconciler" || history[1].From != payments.Failed || s.balance("provider") != 1999 {
			t.Errorf("%+v, %d booked", history, s.balance("provider"))
		}
		if p := s.payment("declined"); p.Status != payments.Failed || p.Why == "" || len(s.breaks()) != 0 {
			t.Errorf("%+v, %v", p, s.breaks())
		}
	})
}

// S102: "not found" is believed by nobody while the provider may not know yet; it neither fails
// the payment nor charges again.
func TestNotFoundForAWhileChargesNothingTwice(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.scenario("p1", psp.Scenario{Name: psp.LookupLate, After: 150 * time.Millisecond}) // less than was promised
		job := s.create("p1")
		s.work()
		s.until("it is found and healed", func() bool {
			s.reconcile(reconcile.LanePending)
			s.work()
			return s.payment("p1").Status == payments.Succeeded
		})
		if sum := s.totals(); sum.Charges != 1 || sum.Repeated != 0 || s.job(job).Status != pacht.Completed {
			t.Errorf("%+v, job %s", sum, s.job(job).Status)
		}
	})
}

// S104: what the provider says of another amount, or cannot say, is with a person in the end, and
// nothing was booked.
func TestWrongAmountsAndGarbageAreBreaksAndNeverBooked(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		want := map[string]string{}
		for variant, class := range map[string]reconcile.Class{
			psp.Lower: reconcile.AmountDiffers, psp.Higher: reconcile.AmountDiffers, psp.OtherCurrency: reconcile.AmountDiffers,
			psp.Null: reconcile.UnknownThere, psp.Missing: reconcile.UnknownThere, psp.Decimal: reconcile.UnknownThere, psp.Stranger: reconcile.UnknownThere,
		} {
			s.scenario(variant, psp.Scenario{Name: psp.WrongAmount, Variant: variant})
			s.create(variant)
			want[variant] = string(class) + " person"
		}
		s.work()
		s.until("all are with a person", func() bool {
			s.reconcile(reconcile.LanePending)
			open := s.breaks()
			for reference, class := range want {
				if open[reference] != class {
					return false
				}
			}
			return true
		})
		if tally := s.tally(); tally.Unpaid != 7 || tally.Stuck != 7 || s.receipts() != 0 {
			t.Errorf("%+v", tally)
		}
		if all, err := s.book.Balances(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// A provider that forgot the key too early has charged twice: that is seen, and the second charge
// is nobody's to keep.
func TestChargedTwiceIsABreak(t *testing.T) {
	each(t, psp.Config{IgnoreKeys: true}, func(t *testing.T, s *shop) {
		s.paid("p1")
		_, err := s.provider.Charge(t.Context(), "again", psp.Order{Reference: "p1", Amount: eur(1999)})
		must(t, err)
		s.reconcile(reconcile.LaneSettled)
		if open := s.breaks(); open["p1"] != string(reconcile.ChargedTwice)+" person" || s.balance("provider") != 1999 {
			t.Errorf("%v, %d booked", open, s.balance("provider"))
		}
	})
}

// S101: a payer who presses twice is one payment under one key; two carts of one amount are two
// payments, which are shown as likely duplicates and never merged.
func TestLikelyDuplicatesAreShownAndNeverMerged(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		for _, p := range []payments.Payment{
			{ID: "p1", Payer: "ann", Amount: eur(1999)}, {ID: "p2", Payer: "ann", Amount: eur(1999)},
			{ID: "p3", Payer: "ann", Amount: eur(2000)}, {ID: "p4", Payer: "bob", Amount: eur(1999)},
			{ID: "p5", Payer: "ann", Amount: money.Amount{Minor: 1999, Currency: "USD"}},
			{ID: "p6", Amount: eur(1999)}, {ID: "p7", Amount: eur(1999)}, // nobody said who pays
		} {
			_, err := s.book.Create(t.Context(), p)
			must(t, err)
		}
		s.work()
		found, err := s.book.Duplicates(t.Context(), 5*time.Minute)
		must(t, err)
		one := map[string]bool{"p1": true, "p2": true}
		if len(found) != 1 || !one[found[0].PaymentID] || !one[found[0].Earlier] || found[0].PaymentID == found[0].Earlier {
			t.Errorf("%+v", found)
		}
		if tally := s.tally(); tally.Paid != 7 {
			t.Errorf("%+v", tally)
		}
		// It is a break for a person, and stays one though both sides agree.
		s.reconcile(reconcile.LaneSettled)
		if open := s.breaks(); len(open) != 1 || open[found[0].PaymentID] != payments.LikelyDuplicate+" person" {
			t.Errorf("%v", open)
		}
		s.age("p1", time.Hour)
		if found, err := s.book.Duplicates(t.Context(), 5*time.Minute); err != nil || len(found) != 0 {
			t.Errorf("an hour apart: %+v, %v", found, err)
		}
	})
}
