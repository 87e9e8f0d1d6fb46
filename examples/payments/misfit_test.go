package payments_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

// S104: news that do not fit end as an open break with a person, whoever told them, and not in a
// table of events that nobody reads.
func TestNewsThatDoNotFitAreAnOpenBreak(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		of := func(event psp.Event, id string) psp.Event {
			event.ID, event.Charge.Reference = event.ID+id, id
			event.Charge.ID += id
			return event
		}
		ids := []string{"amount", "currency", "twice", "refund", "page", "parked"}
		for _, id := range ids[:5] {
			_, err := s.book.Create(t.Context(), payments.Payment{ID: id, Amount: eur(1999)}, pacht.Queue("elsewhere"))
			must(t, err)
		}
		amount := happened("evt_a", "ch", psp.Succeeded)
		amount.Charge.Amount.Minor = 1998
		currency := happened("evt_c", "ch", psp.Succeeded)
		currency.Charge.Amount.Currency = "USD"
		refund := happened("evt_r", "ch", psp.Succeeded)
		foreign := psp.Refund{ID: "re_2", Charge: "chrefund", Status: psp.Succeeded, Amount: eur(5)}
		foreign.Amount.Currency = "USD"
		refund.Charge.Refunds = []psp.Refund{foreign, {ID: "re_1", Charge: "chrefund", Status: psp.Succeeded, Amount: eur(5)}}
		for _, c := range []struct {
			event psp.Event
			want  string
		}{
			{of(amount, "amount"), payments.Break},
			{of(currency, "currency"), payments.Break},
			{of(happened("evt_1", "one", psp.Succeeded), "twice"), payments.Applied},
			{of(happened("evt_2", "two", psp.Succeeded), "twice"), payments.Break},
			{of(refund, "refund"), payments.Break}, // though its other refund fits
			{of(amount, "parked"), payments.ParkedEvent},
		} {
			for range 2 {
				if status, got := s.event(c.event); status != http.StatusOK || got.Verdict != c.want {
					t.Errorf("%s: %d, %+v", c.event.ID, status, got)
				}
			}
		}
		_, err := s.provider.Charge(t.Context(), "k", psp.Order{Reference: "page", Amount: eur(1)})
		must(t, err)
		for range 2 {
			if status, said := s.get("/return?payment=page"); status != http.StatusOK {
				t.Errorf("%d %s", status, said)
			}
		}
		_, err = s.book.Create(t.Context(), payments.Payment{ID: "parked", Amount: eur(1999)}, pacht.Queue("elsewhere"))
		must(t, err)
		s.workUntil("all breaks are open", func() bool {
			tally := s.tally() // the charges wait elsewhere
			return tally.Pending == int64(len(ids)) && tally.Processing == 0
		})
		open := s.breaks()
		for _, id := range ids {
			want := string(reconcile.AmountDiffers) + " person"
			if id == "twice" {
				want = string(reconcile.ChargedTwice) + " person"
			}
			if open[id] != want {
				t.Errorf("%s: %q, want %s", id, open[id], want)
			}
		}
		if len(open) != len(ids) {
			t.Errorf("%v", open)
		}
	})
}

// What a webhook told alone is asked for: if the provider does not say so, the break is closed.
// Other news of the kind open it again.
func TestReconcilerClosesTheBreakOfAnEventThatTheProviderDoesNotConfirm(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		s.work()
		for _, charge := range []string{"other", "another"} {
			event := happened("evt_"+charge, charge, psp.Succeeded)
			if status, got := s.event(event); status != http.StatusOK || got.Verdict != payments.Break {
				t.Errorf("%d, %+v", status, got)
			}
			s.work()
			if open := s.breaks(); open["p1"] != string(reconcile.ChargedTwice)+" person" {
				t.Errorf("%v", open)
			}
			s.age("p1", time.Minute)
			s.until("the break is closed", func() bool {
				s.reconcile(reconcile.LaneSettled)
				return len(s.breaks()) == 0
			})
		}
	})
}
