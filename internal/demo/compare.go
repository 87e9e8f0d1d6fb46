package demo

import (
	"context"
	"fmt"
	"math"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
)

// sums is the ledger of one side, in one currency.
type sums struct{ charged, refunded, chargedBack int64 }

func (s sums) net() int64 { return s.charged - s.refunded - s.chargedBack }

// text is the ledger for people.
func (s sums) text(currency string) string {
	of := func(minor int64) string {
		return money.Amount{Minor: minor, Currency: money.Currency(currency)}.String()
	}
	return fmt.Sprintf("charged %s, refunded %s, charged back %s", of(s.charged), of(s.refunded), of(s.chargedBack))
}

// books is what both sides say in the end, payment by payment. The reconciler has no part in it.
type books struct {
	rows      int64 // payments in our database
	agree     int64 // that both sides have alike
	paid      int64 // of these, paid
	lost      int64 // that differ, and no open break of the right class says so
	parked    int64 // jobs that are set aside, and no open break says so
	strangers int64 // references charged there that are no payment here
	breaks    map[string][]pacht.Break
	open      int64           // differences that an open break rightly tells of
	excepted  map[string]sums // what the provider has of these, by currency
	ours      map[string]sums
	unequal   []string // currencies and what is wrong with them
	provider  psp.Totals
}

// compare fills in the result.
func (r *run) compare(ctx context.Context) error {
	tally, err := r.place.Book.Tally(ctx)
	if err != nil {
		return err
	}
	b, err := r.readBooks(ctx)
	if err != nil {
		return err
	}
	violations, err := r.place.Store.Check(ctx)
	if err != nil {
		return fmt.Errorf("check the rules: %w", err)
	}
	for _, v := range violations {
		r.screen.event("rule %s is broken by job %d: %s", v.Rule, v.Job, v.Detail)
	}
	healed, err := r.healed(ctx)
	if err != nil {
		return err
	}
	if b.parked = max(tally.Stuck-b.open, 0); b.parked > 0 {
		r.screen.event("%s jobs are set aside, and no open break says so", thousands(b.parked))
	}
	for _, what := range b.unequal {
		r.screen.event("the ledgers differ: %s", what)
	}
	res := Result{
		Payments: int64(r.cfg.Payments), Completed: b.agree,
		Lost: b.lost, DoubleCharged: b.provider.ChargedMore, RepeatedCalls: b.provider.Repeated,
		Attempts: tally.Attempts, Expired: tally.Expired, RefusedLate: tally.RefusedLate,
		Unknown: tally.Unknown, Healed: healed, BreaksOpen: int64(len(b.breaks)), LedgerEqual: len(b.unequal) == 0,
		Kills: r.chaos.kills, Pauses: r.chaos.pauses,
		Seconds: math.Round(r.start.Elapsed().Seconds()*10) / 10,
	}
	res.OK = res.Completed+b.open == res.Payments && res.Lost == 0 && res.DoubleCharged == 0 && b.strangers == 0 && b.parked == 0 && res.BreaksOpen == b.open &&
		res.LedgerEqual && len(violations) == 0 &&
		res.Kills >= minKills && res.Pauses >= minPauses && res.Expired >= 1 && res.RefusedLate >= 1
	r.result = res
	if !r.cfg.NoTable {
		r.screen.table(res, b, len(violations))
	}
	return nil
}

func (r *run) healed(ctx context.Context) (n int64, err error) {
	counts, err := r.place.Store.BreakCounts(ctx, r.start.Time().AddDate(-1, 0, 0))
	for _, c := range counts {
		if c.Status == pacht.BreakHealed {
			n += c.Breaks
		}
	}
	return n, err
}

// readBooks compares every payment that was ordered with our database and with the
// provider's ledger.
func (r *run) readBooks(ctx context.Context) (b books, err error) {
	b.excepted, b.ours, b.breaks = map[string]sums{}, map[string]sums{}, map[string][]pacht.Break{}
	if b.provider, err = r.provider.Totals(ctx); err != nil {
		return b, err
	}
	all, err := r.provider.Charges(ctx)
	if err != nil {
		return b, err
	}
	there := map[string][]psp.Charge{} // by reference
	for _, c := range all {
		there[c.Reference] = append(there[c.Reference], c)
	}
	if err := r.readBreaks(ctx, &b); err != nil {
		return b, err
	}
	for after := ""; ; {
		page, err := r.place.Book.Payments(ctx, after, 1000)
		if err != nil {
			return b, err
		}
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			after = p.ID
			b.rows++
			b.weigh(p, there[p.ID])
			delete(there, p.ID)
		}
	}
	b.lost = int64(r.cfg.Payments) - b.agree - b.open
	b.strangers = int64(len(there))
	return b, r.compareLedgers(ctx, &b)
}

func (r *run) readBreaks(ctx context.Context, b *books) error {
	for f := (pacht.BreakFilter{Limit: 1000}); ; {
		page, err := r.place.Store.Breaks(ctx, f)
		if err != nil {
			return err
		}
		for _, each := range page {
			b.breaks[each.Reference] = append(b.breaks[each.Reference], each)
			f.After = pacht.BreakCursor{Reference: each.Reference, Class: each.Class}
		}
		if len(page) < f.Limit {
			return nil
		}
	}
}

// weigh says whether both sides have a payment alike, and if not, whether an open break says so
// with the right class.
func (b *books) weigh(p payments.Payment, there []psp.Charge) {
	var taken []psp.Charge
	for _, c := range there {
		if c.Status == psp.Succeeded {
			taken = append(taken, c)
		}
	}
	switch open := b.breaks[p.ID]; {
	case agree(p, there, taken):
		if b.agree++; p.Taken() {
			b.paid++
		}
	case len(open) == 1 && open[0].Status == pacht.BreakPerson && open[0].Class == string(differ(p, taken)):
		b.open++
		for _, c := range taken {
			s := b.excepted[string(c.Amount.Currency)]
			b.excepted[string(c.Amount.Currency)] = sums{s.charged + c.Amount.Minor, s.refunded + c.Refunded, s.chargedBack + c.ChargedBack}
		}
	}
}

// agree says whether both have it alike. A payment that failed was refused there: that nobody
// asked is no reason.
func agree(p payments.Payment, there, taken []psp.Charge) bool {
	switch {
	case p.Status == payments.Failed:
		return len(taken) == 0 && len(there) > 0
	case !p.Taken() || len(taken) != 1:
		return false
	}
	c := taken[0]
	return c.ID == p.ChargeID && c.Amount == p.Amount && c.Refunded == p.Refunded && p.Refunding == 0 &&
		c.ChargedBack == p.ChargedBack
}

// differ is the class that a difference must have for which nobody can do anything but a person.
func differ(p payments.Payment, taken []psp.Charge) reconcile.Class {
	switch {
	case len(taken) > 1:
		return reconcile.ChargedTwice
	case len(taken) == 1 && taken[0].Amount != p.Amount && p.Status == payments.Pending:
		return reconcile.AmountDiffers
	}
	return "" // anything else should have been healed
}

// compareLedgers compares what was booked here with what moved there, currency by currency and
// kind by kind, to the last unit.
func (r *run) compareLedgers(ctx context.Context, b *books) error {
	unbalanced, err := r.place.Book.Unbalanced(ctx)
	if err != nil {
		return err
	}
	if unbalanced > 0 {
		b.unequal = append(b.unequal, fmt.Sprintf("%d movements of ours do not sum up to zero", unbalanced))
	}
	balances, err := r.place.Book.Balances(ctx)
	if err != nil {
		return err
	}
	net := map[string]int64{}
	currencies := map[string]bool{}
	for _, each := range balances {
		currencies[each.Currency] = true
		s := b.ours[each.Currency]
		switch each.Account {
		case "sales":
			s.charged = -each.Minor
		case "refunds":
			s.refunded = each.Minor
		case "chargebacks":
			s.chargedBack = each.Minor
		case "provider":
			net[each.Currency] = each.Minor
		}
		b.ours[each.Currency] = s
	}
	for currency := range b.provider.Charged {
		currencies[currency] = true
	}
	for currency := range currencies {
		out := b.excepted[currency]
		theirs := sums{b.provider.Charged[currency] - out.charged, b.provider.Refunded[currency] - out.refunded, b.provider.ChargedBack[currency] - out.chargedBack}
		if ours := b.ours[currency]; ours != theirs || net[currency] != theirs.net() {
			b.unequal = append(b.unequal, fmt.Sprintf("%s: we have %s, the provider has %s", currency, ours.text(currency), theirs.text(currency)))
		}
	}
	return nil
}
