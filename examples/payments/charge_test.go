package payments_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
)

func TestPaymentAndItsJobAreCreatedTogetherOrNotAtAll(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		first := s.create("p1")
		if again := s.create("p1"); again != first {
			t.Errorf("created again: job %d, want %d", again, first)
		}
		other := payments.Payment{ID: "p1", AmountMinor: 2000, Currency: "EUR"}
		if _, err := s.book.Create(t.Context(), other); !errors.Is(err, pacht.ErrKeyConflict) {
			t.Errorf("other content under the same id: %v", err)
		}
		if got := s.payment("p1"); got.AmountMinor != 1999 || got.Status != payments.Created {
			t.Errorf("payment %+v", got)
		}
		var invalid *pacht.InvalidError
		for _, p := range []payments.Payment{
			{ID: "", AmountMinor: 1, Currency: "EUR"},
			{ID: "x", AmountMinor: 0, Currency: "EUR"},
			{ID: "x", AmountMinor: 1, Currency: "eur"},
		} {
			if _, err := s.book.Create(t.Context(), p); !errors.As(err, &invalid) {
				t.Errorf("%+v: %v", p, err)
			}
		}
		// A job that is refused takes the payment with it.
		good := payments.Payment{ID: "x", AmountMinor: 1, Currency: "EUR"}
		if _, err := s.book.Create(t.Context(), good, pacht.TTL(time.Millisecond)); !errors.As(err, &invalid) {
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

// The gap between "charged" and "written down": the answers of half the calls are lost.
func TestLostAnswerIsAskedAgainAndChargedOnce(t *testing.T) {
	each(t, psp.Config{Seed: 3, LoseRate: 0.5, FailRate: 0.2}, func(t *testing.T, s *shop) {
		const n = 12
		ids := map[string]pacht.ID{}
		for i := range n {
			id := fmt.Sprintf("p%02d", i)
			ids[id] = s.create(id)
		}
		s.work(s.provider)
		sum := s.totals()
		if sum.Charges != n || sum.ChargedMore != 0 || sum.Repeated == 0 || sum.AmountMinor["EUR"] != n*1999 {
			t.Errorf("provider's ledger: %+v", sum)
		}
		unanswered := 0
		for id, job := range ids {
			p := s.payment(id)
			there, err := s.provider.Lookup(t.Context(), id)
			if err != nil || len(there) != 1 || p.Status != payments.Paid || p.ChargeRef != there[0].ID {
				t.Errorf("payment %+v, there %+v, %v", p, there, err)
			}
			steps, err := s.store.Steps(t.Context(), job)
			must(t, err)
			if last := steps[len(steps)-1]; last.Name != payments.StepCharged {
				t.Errorf("last step of %s: %s", id, last.Name)
			}
			unanswered += len(steps) - 1
		}
		if tally := s.tally(); tally.Completed != n || unanswered == 0 || tally.Attempts != int64(n+unanswered) {
			t.Errorf("%d unanswered, %+v", unanswered, tally)
		}
	})
}

// R4: the second run of a handler asks the provider again and is not charged again, and what
// it would write is refused.
func TestHandlerRunTwiceChargesOnceAndBooksOnce(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		charger := &payments.Charger{Book: s.book, Provider: s.provider}
		job := s.claim("a")
		must(t, charger.Handle(t.Context(), job))
		before := s.payment("p1")
		if err := charger.Handle(t.Context(), job); !errors.Is(err, pacht.ErrLeaseLost) && !errors.Is(err, pacht.ErrAlreadySettled) {
			t.Errorf("second run: %v", err)
		}
		if after := s.payment("p1"); before.Status != payments.Paid || after != before {
			t.Errorf("%+v, then %+v", before, after)
		}
		if sum := s.totals(); sum.Charges != 1 || sum.Repeated != 1 {
			t.Errorf("provider's ledger: %+v", sum)
		}
		if tally := s.tally(); tally.Attempts != 1 || tally.Completed != 1 {
			t.Errorf("%+v", tally)
		}
	})
}

// R3, R7: a holder that comes back after its lease was taken changes nothing, neither the job
// nor the payment.
func TestHolderThatComesBackTooLateWritesNothing(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1", pacht.TTL(pacht.MinTTL))
		charger := &payments.Charger{Book: s.book, Provider: s.provider}
		slow := s.claim("slow")
		s.until(func() bool {
			pass, err := s.store.Expire(t.Context(), pacht.ExpireRequest{By: "test", Limit: 10, Period: time.Second, Force: true})
			must(t, err)
			return len(pass.Expired) == 1
		})
		if err := charger.Handle(t.Context(), slow); !errors.Is(err, pacht.ErrLeaseLost) {
			t.Errorf("late: %v", err)
		}
		// Charged, but not written down by the one who may not.
		if p := s.payment("p1"); p.Status != payments.Created {
			t.Errorf("the late one wrote %+v", p)
		}
		s.work(s.provider)
		if p := s.payment("p1"); p.Status != payments.Paid {
			t.Errorf("payment %+v", p)
		}
		if sum := s.totals(); sum.Charges != 1 || sum.Repeated != 1 {
			t.Errorf("provider's ledger: %+v", sum)
		}
	})
}

func TestDeclinedPaymentIsDeadAtOnce(t *testing.T) {
	each(t, psp.Config{DeclineRate: 1}, func(t *testing.T, s *shop) {
		id := s.create("p1")
		s.work(s.provider)
		job, err := s.store.Job(t.Context(), id)
		must(t, err)
		if p := s.payment("p1"); p.Status != payments.Declined || job.Status != pacht.Dead || job.Attempt != 1 {
			t.Errorf("payment %+v, job %s after %d attempts", p, job.Status, job.Attempt)
		}
		if sum := s.totals(); sum.Charges != 0 {
			t.Errorf("provider's ledger: %+v", sum)
		}
	})
}

// asker is a provider of whatever the test wants.
type asker func(ctx context.Context, key string, charge psp.Charge) (psp.Entry, error)

func (a asker) Charge(ctx context.Context, key string, charge psp.Charge) (psp.Entry, error) {
	return a(ctx, key, charge)
}

// R10: what the provider says about another charge is not taken for an answer.
func TestAnswerAboutAnotherChargeParksTheJob(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		id := s.create("p1")
		s.work(asker(func(_ context.Context, key string, c psp.Charge) (psp.Entry, error) {
			c.AmountMinor++
			return psp.Entry{What: psp.Charged, ID: "ch_1", Key: key, Charge: c}, nil
		}))
		job, err := s.store.Job(t.Context(), id)
		must(t, err)
		if p := s.payment("p1"); p.Status != payments.Created || job.Status != pacht.Stuck {
			t.Errorf("payment %+v, job %s", p, job.Status)
		}
	})
}

// The money has moved: a handler that is told to stop writes that down as long as the fence
// lets it.
func TestStoppedHandlerStillBooksWhatWasCharged(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		ctx, stop := context.WithCancelCause(t.Context())
		charger := &payments.Charger{Book: s.book, Provider: asker(func(ctx context.Context, key string, c psp.Charge) (psp.Entry, error) {
			entry, err := s.provider.Charge(ctx, key, c)
			stop(pacht.ErrStopping)
			return entry, err
		})}
		must(t, charger.Handle(ctx, s.claim("a")))
		if p := s.payment("p1"); p.Status != payments.Paid {
			t.Errorf("payment %+v", p)
		}
		if tally := s.tally(); tally.Completed != 1 {
			t.Errorf("%+v", tally)
		}
	})
}

// A call that gets no answer ends soon after its lease does, and says why.
func TestCallDoesNotOutliveItsLeaseForLong(t *testing.T) {
	each(t, psp.Config{HoldAnswers: true}, func(t *testing.T, s *shop) {
		s.create("p1")
		ctx, stop := context.WithCancelCause(t.Context())
		charger := &payments.Charger{Book: s.book, Provider: s.provider}
		job := s.claim("a")
		ended := make(chan error, 1)
		go func() { ended <- charger.Handle(ctx, job) }()
		s.until(func() bool { return s.totals().Charges == 1 })
		stop(pacht.ErrLeaseLost)
		if err := <-ended; !errors.Is(err, psp.ErrUnanswered) {
			t.Errorf("got %v", err)
		}
		if steps, err := s.store.Steps(t.Context(), job.ID); err != nil || len(steps) != 0 {
			t.Errorf("steps %+v, %v", steps, err)
		}
	})
}
