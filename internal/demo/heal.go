package demo

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
)

const (
	// delay is how long the provider takes for what happens later; consistency, for how long
	// its look-ups may not find what was done: it promises more than it needs.
	delay       = time.Second
	consistency = 3 * delay / 2
	// patient is the grace of the reconcilers in the workers: thousands of payments wait in the
	// queue, and that they are pending is no news. At the end nothing has a reason to be.
	patient, impatient = 10 * time.Minute, time.Second
	// mostHealing bounds the reconciliation at the end.
	mostHealing = 40 * time.Second
	// givenBack is how many payments are refunded at the end, by turns here and at the
	// provider's side, where nobody tells us.
	givenBack = 20
)

// newReconciler makes a reconciler that asks again soon: the demo has no hours. What is still
// open after a minute would go to a person.
func newReconciler(p *place, provider *psp.Client, effects *effect.Effects, grace time.Duration, logger *slog.Logger) (*reconcile.Reconciler, error) {
	policies := map[reconcile.Class]reconcile.Policy{}
	for class, policy := range reconcile.DefaultPolicies() {
		policy.Base, policy.Cap, policy.MaxAge = 200*time.Millisecond, time.Second, time.Minute
		policies[class] = policy
	}
	return reconcile.New(reconcile.Config{
		Store: p.Store, Ours: payments.Ours{Book: p.Book}, Theirs: payments.Theirs{Provider: provider}, Effects: effects,
		Policies: policies, Grace: grace, Period: time.Second, SlowPeriod: time.Hour, ListPeriod: time.Hour, Window: time.Hour,
		Rate: 1000, Timeout: 5 * time.Second, Queue: queue, Logger: logger,
	})
}

// giveBack refunds some payments, so that the ledger has something of everything.
func (r *run) giveBack(ctx context.Context) error {
	chance := clock.Seeded(r.cfg.Seed, "refunds")
	given := 0
	for _, i := range chance.Perm(r.cfg.Payments) {
		if given == min(givenBack, r.cfg.Payments/2) {
			return nil
		}
		p, err := r.place.Book.Payment(ctx, paymentID(i))
		if err != nil {
			return err
		}
		if p.Status != payments.Succeeded || r.psp.Draw(p.ID).Name == psp.ChargedBack {
			continue // what comes back twice is a matter of luck, and the demo has a seed
		}
		amount := money.Amount{Minor: 1 + chance.Int64N(p.Amount.Minor), Currency: p.Amount.Currency}
		if given++; given%2 == 0 {
			_, err = r.provider.DashboardRefund(ctx, p.ChargeID, amount)
		} else {
			err = r.place.Book.AskRefund(ctx, payments.Refund{ID: "ref_" + p.ID, PaymentID: p.ID, Amount: amount})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// heal lets the reconciler look through everything until nothing is left that it or a worker
// could do: what is open then is with a person.
func (r *run) heal(ctx context.Context) error {
	r.screen.endProgress()
	if err := r.giveBack(ctx); err != nil {
		return fmt.Errorf("refund some: %w", err)
	}
	effects := effect.New(r.place.Store)
	if _, err := payments.NewHandlers(r.place.Book, r.provider, r.place.Store, effects, promises); err != nil {
		return err
	}
	rec, err := newReconciler(r.place, r.provider, effects, impatient, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	began, quiet, healed := clock.Now(), 0, 0
	for quiet < 2 && began.Elapsed() < mostHealing {
		if err := clock.Sleep(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		n := 0
		for _, lane := range []reconcile.Lane{reconcile.LanePending, reconcile.LaneList} {
			report, err := rec.Pass(ctx, lane, false)
			if err != nil && began.Elapsed() > mostHealing/2 {
				return err // the list shifts while it is read, for a while
			}
			n += report.Healed
		}
		healed += n
		idle, err := r.idle(ctx)
		if err != nil {
			return err
		}
		// What the provider does later must have happened, and have been seen.
		if quiet++; n > 0 || !idle || began.Elapsed() < 3*delay {
			quiet = 0
		}
	}
	r.screen.event("reconciled with the provider in %s: healed %s payments more", began.Elapsed().Round(100*time.Millisecond), thousands(int64(healed)))
	return nil
}

// idle says that nothing is left to do for anybody but a person.
func (r *run) idle(ctx context.Context) (bool, error) {
	tally, err := r.place.Book.Tally(ctx)
	if err != nil || tally.Pending+tally.Processing > 0 {
		return false, err
	}
	waiting, err := r.place.Store.Breaks(ctx, pacht.BreakFilter{Status: pacht.BreakWaiting, Limit: 1})
	if err != nil || len(waiting) > 0 {
		return false, err
	}
	there, err := r.provider.Totals(ctx)
	return there.Pending == 0, err
}
