package payments_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

// S097: an event whose effect failed is not kept as seen; its next delivery is the first.
func TestEventWhoseEffectFailedIsProcessedByItsNextDelivery(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		broken := []string{`CREATE TRIGGER broken BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'disk is full'); END`, `DROP TRIGGER broken`}
		if s.onPostgres() {
			broken = []string{
				`CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk is full'; END $$`,
				`CREATE TRIGGER broken BEFORE INSERT ON "The Queue".entries FOR EACH ROW EXECUTE FUNCTION broken()`,
				`DROP TRIGGER broken ON "The Queue".entries`,
			}
		}
		for _, statement := range broken[:len(broken)-1] {
			s.exec(statement)
		}
		event := happened("evt_1", "ch_1", psp.Succeeded)
		if status, _ := s.event(event); status != http.StatusInternalServerError {
			t.Errorf("answered with %d", status)
		}
		if events, err := s.book.Events(t.Context(), "", 10); err != nil || len(events) != 0 || s.payment("p1").Status != payments.Pending {
			t.Errorf("%+v, %v, %+v", events, err, s.payment("p1"))
		}
		s.exec(broken[len(broken)-1])
		for i := range 3 {
			status, got := s.event(event)
			if status != http.StatusOK || got.Verdict != payments.Applied || got.Duplicate != (i > 0) {
				t.Errorf("delivery %d: %d, %+v", i+2, status, got)
			}
		}
		events, err := s.book.Events(t.Context(), "p1", 10)
		must(t, err)
		if len(events) != 1 || events[0].Seen != 3 || s.balance("provider") != 1999 || s.receipts() != 1 {
			t.Errorf("%+v, %d booked, %d receipts", events, s.balance("provider"), s.receipts())
		}
	})
}

// S098: in every order, each twice, a paid order stays paid by the attempt that paid it, and what
// was ignored is kept.
func TestEventsInEveryOrderEndTheSame(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		all := []psp.Event{
			happened("evt_failed", "a1", psp.Failed), happened("evt_succeeded", "a2", psp.Succeeded),
			happened("evt_failed_again", "a1", psp.Failed), happened("evt_pending", "a2", psp.Pending),
		}
		n := 0
		for order := range permutations(len(all)) {
			n++
			id := fmt.Sprintf("p%d", n)
			s.create(id)
			for range 2 {
				for _, i := range order {
					event := all[i]
					event.ID, event.Charge.Reference = event.ID+id, id
					event.Charge.ID += id
					body, err := json.Marshal(event)
					must(t, err)
					_, err = s.book.Receive(t.Context(), body)
					must(t, err)
				}
			}
			p := s.payment(id)
			if p.Status != payments.Succeeded || p.ChargeID != "a2"+id || s.balance("provider") != int64(n)*1999 {
				t.Errorf("order %v: %+v, %d booked", order, p, s.balance("provider"))
			}
			events, err := s.book.Events(t.Context(), id, 10)
			must(t, err)
			if len(events) != 4 {
				t.Errorf("order %v: %d events", order, len(events))
			}
			for _, e := range events {
				if e.Seen != 2 || e.Verdict == payments.Ignored && e.Why == "" {
					t.Errorf("order %v: %+v", order, e)
				}
			}
		}
		if n != 24 || s.receipts() != 24 {
			t.Errorf("%d orders, %d receipts", n, s.receipts())
		}
	})
}

func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		var walk func(done, left []int) bool
		walk = func(done, left []int) bool {
			if len(left) == 0 {
				return yield(done)
			}
			for i := range left {
				rest := append(append([]int{}, left[:i]...), left[i+1:]...)
				if !walk(append(append([]int{}, done...), left[i]), rest) {
					return false
				}
			}
			return true
		}
		var all []int
		for i := range n {
			all = append(all, i)
		}
		walk(nil, all)
	}
}

// S099: an event that comes before its payment is tried again; one that is nobody's becomes a
// break for a person, and not silence.
func TestEventBeforeItsPaymentIsParkedAndTriedAgain(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		nobodys := happened("evt_2", "ch_2", psp.Succeeded)
		nobodys.Charge.Reference = "rolled back"
		for _, event := range []psp.Event{happened("evt_1", "ch_1", psp.Succeeded), nobodys} {
			for range 2 {
				if status, got := s.event(event); status != http.StatusOK || got.Verdict != payments.ParkedEvent {
					t.Errorf("%d, %+v", status, got)
				}
			}
		}
		// One that waits is not to be replaced by another content under its id.
		if status, got := s.event(happened("evt_1", "ch_7", psp.Failed)); status != http.StatusUnprocessableEntity || got.Verdict != payments.Refused {
			t.Errorf("%d, %+v", status, got)
		}
		_, err := s.book.Create(t.Context(), payments.Payment{ID: "p1", Amount: eur(1999)}, pacht.Queue("elsewhere"))
		must(t, err)
		s.workUntil("the events are processed", func() bool {
			tally := s.tally() // once: between two a job may go from one to the other
			return tally.Pending == 1 && tally.Processing == 0
		})
		if p := s.payment("p1"); p.Status != payments.Succeeded || p.ChargeID != "ch_1" || s.totals().Charges != 0 {
			t.Errorf("%+v, charged there %d times", p, s.totals().Charges)
		}
		events, err := s.book.Events(t.Context(), "", 10)
		must(t, err)
		got := map[string]string{}
		for _, e := range events {
			got[e.ID] = e.Verdict
		}
		if got["evt_1"] != payments.Applied || got["evt_2"] != payments.Unmatched {
			t.Errorf("%v", got)
		}
		if open := s.breaks(); open["rolled back"] != string(reconcile.MissingHere)+" person" {
			t.Errorf("%v", open)
		}
		// The payment turns up after all: the provider's next delivery is still good.
		_, err = s.book.Create(t.Context(), payments.Payment{ID: "rolled back", Amount: eur(1999)})
		must(t, err)
		if status, got := s.event(nobodys); status != http.StatusOK || got.Verdict != payments.Applied {
			t.Errorf("%d, %+v", status, got)
		}
	})
}

// Bad webhooks change nothing, and are kept.
func TestBadWebhooksChangeNothingAndAreKept(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		good, err := json.Marshal(happened("evt_1", "ch_1", psp.Succeeded))
		must(t, err)
		null := strings.Replace(string(good), `"amount":{"amount_minor":1999,"currency":"EUR"}`, `"amount":null`, 1)
		decimal := strings.Replace(string(good), `1999`, `"20.00000000"`, 1)
		refund := func(r psp.Refund) string {
			e := happened("evt_2", "ch_1", psp.Succeeded)
			e.Refund = &r
			raw, err := json.Marshal(e)
			must(t, err)
			return string(raw)
		}
		odd := refund(psp.Refund{ID: "re_1", Charge: "ch_1", Status: "odd", Amount: eur(1)})
		negative := refund(psp.Refund{ID: "re_1", Charge: "ch_1", Status: psp.Succeeded, Amount: eur(-1)})
		nul := strings.Replace(string(good), `"reference":"p1"`, `"reference":"p\u0000"`, 1)
		for name, c := range map[string]struct {
			signature, body string
			want            int
		}{
			"odd refund":      {psp.Sign(secret, time.Now(), []byte(odd)), odd, 422},
			"negative refund": {psp.Sign(secret, time.Now(), []byte(negative)), negative, 422},
			"NUL":             {psp.Sign(secret, time.Now(), []byte(nul)), nul, 422},

			"no signature":   {"", string(good), 401},
			"other secret":   {psp.Sign("guessed", time.Now(), good), string(good), 401},
			"other body":     {psp.Sign(secret, time.Now(), []byte(null)), string(good), 401},
			"old":            {psp.Sign(secret, time.Now().Add(-time.Hour), good), string(good), 401},
			"null amount":    {psp.Sign(secret, time.Now(), []byte(null)), null, 422},
			"decimal amount": {psp.Sign(secret, time.Now(), []byte(decimal)), decimal, 422},
			"no JSON":        {psp.Sign(secret, time.Now(), []byte("{")), "{", 422},
			"too long":       {"", strings.Repeat("x", 70_000), 413},
		} {
			if status, said := s.send("/webhooks/psp", map[string]string{psp.SignatureHeader: c.signature}, c.body); status != c.want {
				t.Errorf("%s: %d %s", name, status, said)
			}
		}
		if p := s.payment("p1"); p.Status != payments.Pending || p.Rev != 1 || s.balance("provider") != 0 {
			t.Errorf("%+v", p)
		}
		events, err := s.book.Events(t.Context(), "", 100)
		must(t, err)
		seen := int64(0)
		for _, e := range events {
			if e.Verdict != payments.Refused || e.Why == "" {
				t.Errorf("%+v", e)
			}
			seen += e.Seen
		}
		if len(events) != 7 || seen != 10 { // all bad signatures are one row
			t.Errorf("%d rows, %d times: %+v", len(events), seen, events)
		}
		// The same id with another content is refused once it was processed.
		s.event(happened("evt_1", "ch_1", psp.Succeeded))
		if status, got := s.event(happened("evt_1", "ch_1", psp.Failed)); status != http.StatusUnprocessableEntity || got.Verdict != payments.Refused {
			t.Errorf("%d, %+v", status, got)
		}
	})
}

// S104: money of another amount or currency is never taken for the payment's.
func TestSuccessOfAnotherAmountIsABreak(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		for i, amount := range []int64{1998, 2000} {
			event := happened(fmt.Sprintf("evt_%d", i), "ch_1", psp.Succeeded)
			event.Charge.Amount.Minor = amount
			if status, got := s.event(event); status != http.StatusOK || got.Verdict != payments.Break {
				t.Errorf("%d, %+v", status, got)
			}
		}
		event := happened("evt_usd", "ch_1", psp.Succeeded)
		event.Charge.Amount.Currency = "USD"
		if status, got := s.event(event); status != http.StatusOK || got.Verdict != payments.Break {
			t.Errorf("%d, %+v", status, got)
		}
		if p := s.payment("p1"); p.Status != payments.Pending || s.balance("provider") != 0 || s.receipts() != 0 {
			t.Errorf("%+v, %d booked", p, s.balance("provider"))
		}
	})
}

// A payment that was given up is accepted when the money was taken after all, with the evidence;
// and given back at once if that is the policy.
func TestLateSuccessIsAcceptedWithEvidenceOrGivenBack(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		for _, refund := range []bool{false, true} {
			s.book.RefundLate = refund
			id := fmt.Sprintf("p-%v", refund)
			charge, err := s.provider.Charge(t.Context(), id, psp.Order{Reference: id, Amount: eur(1999)})
			must(t, err)
			_, err = s.book.Create(t.Context(), payments.Payment{ID: id, Amount: eur(1999)}, pacht.RunIn(time.Hour))
			must(t, err)
			failed := charge
			failed.Status = psp.Failed
			for _, news := range []psp.Charge{failed, charge, charge} {
				_, err := s.book.Apply(t.Context(), payments.News{Charge: news, By: "operator ann", Why: "given up"})
				must(t, err)
			}
			p := s.payment(id)
			history, err := s.book.Transitions(t.Context(), id)
			must(t, err)
			if p.Status != payments.Succeeded || len(history) != 2 || history[1].From != payments.Failed || !strings.Contains(history[1].Why, "given up") ||
				!strings.Contains(history[1].Evidence, charge.ID) || history[1].By != "operator ann" {
				t.Errorf("%+v, %+v", p, history)
			}
			if want := map[bool]int64{false: 0, true: 1999}[refund]; p.Refunding != want {
				t.Errorf("policy %v: %+v", refund, p)
			}
		}
		if s.receipts() != 1 {
			t.Errorf("%d receipts", s.receipts())
		}
	})
}

// S106: whoever comes first makes the transition, and alone writes entries and enqueues jobs.
func TestAllWhoConfirmAtOnceMakeOneTransition(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		n := 60
		if s.onPostgres() { // a pause in the middle of the effect; on a file nobody else could write meanwhile
			s.exec(`CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END $$`)
			s.exec(`CREATE TRIGGER pause BEFORE INSERT ON "The Queue".entries FOR EACH ROW WHEN (NEW.payment_id = 'p000') EXECUTE FUNCTION pause()`)
		}
		for i := range n {
			id := fmt.Sprintf("p%03d", i)
			_, err := s.book.Create(t.Context(), payments.Payment{ID: id, Amount: eur(1999)}, pacht.RunIn(time.Hour))
			must(t, err)
			charge, err := s.provider.Charge(t.Context(), id, psp.Order{Reference: id, Amount: eur(1999)})
			must(t, err)
			event := psp.Event{ID: "evt" + id, Type: "charge.succeeded", Created: time.Now().UTC(), Charge: charge}
			body, err := json.Marshal(event)
			must(t, err)
			signed := map[string]string{psp.SignatureHeader: psp.Sign(secret, time.Now(), body)}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if status, said := s.send("/webhooks/psp", signed, string(body)); status != http.StatusOK {
						t.Errorf("webhook: %d %s", status, said)
					}
				})
			}
			wg.Go(func() {
				if status, page := s.get("/return?payment=" + id); status != http.StatusOK || !strings.Contains(page, "went through") {
					t.Errorf("return page: %d %s", status, page)
				}
			})
			wg.Go(func() {
				if _, err := s.book.Apply(t.Context(), payments.News{Charge: charge, By: "reconciler"}); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			if history, err := s.book.Transitions(t.Context(), id); err != nil || len(history) != 1 {
				t.Errorf("%+v, %v", history, err)
			}
		}
		if got := s.balance("provider"); got != int64(n)*1999 || s.receipts() != n {
			t.Errorf("%d booked, %d receipts", got, s.receipts())
		}
	})
}

// A signed event with text that no database can hold, a name that stands twice or is too long for a
// key of an index is refused and kept, each, on both databases alike.
func TestSignedGarbageIsRefusedAndKept(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		e := happened("evt_1", "ch_1", psp.Succeeded)
		e.Charge.Refunds = []psp.Refund{{ID: "re_1", Reference: "r", Charge: "ch_1", Status: psp.Succeeded, Amount: eur(5)}}
		raw, err := json.Marshal(e)
		must(t, err)
		good := string(raw)
		long := strings.Repeat("x", 5000)
		var bodies []string
		for _, bad := range []string{`\u0000`, `\ud800`, "\xff", long} {
			for _, name := range []string{`"id":"evt_1`, `"type":"charge`, `"id":"ch_1`, `"reference":"p1`, `"id":"re_1`, `"reference":"r`} {
				body := strings.Replace(good, name, name+bad, 1)
				if body == good {
					t.Fatalf("%s is not in %s", name, good)
				}
				bodies = append(bodies, body)
			}
		}
		bodies = append(bodies,
			strings.Replace(good, `"id":"evt_1"`, `"id":"evt_0","id":"evt_1"`, 1),
			strings.Replace(good, `"status":"succeeded"`, `"status":"failed","status":"succeeded"`, 1),
			strings.Replace(good, `"charge":{`, `"Charge":{`, 1),
			strings.Replace(good, `"amount_minor":5,`, `"amount_minor":9223372036854775807,`, 1),
			``, `[]`)
		for _, body := range bodies {
			status, said := s.send("/webhooks/psp", map[string]string{psp.SignatureHeader: psp.Sign(secret, time.Now(), []byte(body))}, body)
			if status != http.StatusUnprocessableEntity {
				t.Errorf("%.300q: %d %.300s", body, status, said)
			}
		}
		events, err := s.book.Events(t.Context(), "", 100)
		must(t, err)
		if len(events) != len(bodies) || s.payment("p1").Rev != 1 {
			t.Errorf("%d rows of %d: %+v", len(events), len(bodies), events)
		}
	})
}
