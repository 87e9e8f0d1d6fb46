package demo

import (
	"context"
	"fmt"
	"math"

	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
)

// books is what both sides say in the end, payment by payment.
type books struct {
	rows      int64 // payments in our database
	paid      int64 // marked paid there
	paidMinor int64
	lost      int64 // not paid here by a charge there of the same amount
	strangers int64 // references charged there that are no payment here
	provider  psp.Totals
}

// compare fills in the result.
func (r *run) compare(ctx context.Context) error {
	tally, err := r.place.book.Tally(ctx)
	if err != nil {
		return err
	}
	b, err := r.readBooks(ctx)
	if err != nil {
		return err
	}
	violations, err := r.place.store.Check(ctx)
	if err != nil {
		return fmt.Errorf("check the rules: %w", err)
	}
	for _, v := range violations {
		r.screen.event("rule %s is broken by job %d: %s", v.Rule, v.Job, v.Detail)
	}
	res := Result{
		Payments: int64(r.cfg.Payments), Completed: tally.Completed,
		Lost: b.lost, DoubleCharged: b.provider.ChargedMore, RepeatedCalls: b.provider.Repeated,
		Attempts: tally.Attempts, Expired: tally.Expired, RefusedLate: tally.RefusedLate,
		Kills: r.chaos.kills, Pauses: r.chaos.pauses,
		Seconds: math.Round(r.start.Elapsed().Seconds()*10) / 10,
	}
	res.OK = res.Completed == res.Payments && res.Lost == 0 && res.DoubleCharged == 0 && b.strangers == 0 && len(violations) == 0 &&
		res.Kills >= minKills && res.Pauses >= minPauses && res.Expired >= 1 && res.RefusedLate >= 1
	r.result = res
	if !r.cfg.NoTable {
		r.screen.table(res, b, len(violations))
	}
	return nil
}

// readBooks compares every payment that was ordered with our database and with the
// provider's ledger.
func (r *run) readBooks(ctx context.Context) (b books, err error) {
	if b.provider, err = r.provider.Totals(ctx); err != nil {
		return b, err
	}
	charges, err := r.provider.Charges(ctx)
	if err != nil {
		return b, err
	}
	there := map[string]psp.Entry{} // by their id
	references := map[string]bool{}
	for _, c := range charges {
		there[c.ID] = c
		references[c.Reference] = true
	}
	good := int64(0)
	for after := ""; ; {
		page, err := r.place.book.Payments(ctx, after, 1000)
		if err != nil {
			return b, err
		}
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			after = p.ID
			b.rows++
			delete(references, p.ID)
			if p.Status != payments.Paid {
				continue
			}
			b.paid++
			b.paidMinor += p.AmountMinor
			if c, ok := there[p.ChargeRef]; ok && c.Charge == (psp.Charge{Reference: p.ID, AmountMinor: p.AmountMinor, Currency: p.Currency}) {
				good++
			}
		}
	}
	b.lost = int64(r.cfg.Payments) - good
	b.strangers = int64(len(references))
	return b, nil
}
