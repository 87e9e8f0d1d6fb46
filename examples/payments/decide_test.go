package payments

import (
	"strings"
	"testing"

	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
)

// The whole transition table: what a payment becomes by news of its own attempt, of another one,
// and of another amount. S098, S104.
func TestTransitionTable(t *testing.T) {
	eur := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "EUR"} }
	news := map[string]psp.Charge{
		"a pending":      {ID: "a", Status: psp.Pending, Amount: eur(20)},
		"a failed":       {ID: "a", Status: psp.Failed, Amount: eur(20)},
		"a succeeded":    {ID: "a", Status: psp.Succeeded, Amount: eur(20)},
		"a charged_back": {ID: "a", Status: psp.Succeeded, Amount: eur(20), ChargedBack: 10},
		"b pending":      {ID: "b", Status: psp.Pending, Amount: eur(20)},
		"b failed":       {ID: "b", Status: psp.Failed, Amount: eur(20)},
		"b succeeded":    {ID: "b", Status: psp.Succeeded, Amount: eur(20)},
		"b charged_back": {ID: "b", Status: psp.Succeeded, Amount: eur(20), ChargedBack: 10},
		"a more back":    {ID: "a", Status: psp.Succeeded, Amount: eur(20), ChargedBack: 11},
		"a less back":    {ID: "a", Status: psp.Succeeded, Amount: eur(20), ChargedBack: 9},
		"a too much":     {ID: "a", Status: psp.Succeeded, Amount: eur(20), ChargedBack: 11, Refunded: 10},
		"a too little":   {ID: "a", Status: psp.Succeeded, Amount: eur(9)},
		"a in dollars":   {ID: "a", Status: psp.Succeeded, Amount: money.Amount{Minor: 10, Currency: "USD"}},
	}
	amount, twice := "break "+string(reconcile.AmountDiffers), "break "+string(reconcile.ChargedTwice)
	const stays, booked, back, both = "ignored", "succeeded +charge", "charged_back +chargeback", "charged_back +charge +chargeback"
	for _, c := range []struct {
		status, charge string
		want           map[string]string // of a and b: pending, failed, succeeded, charged back
	}{
		{Pending, "", map[string]string{"a more back": both, "a less back": both, "a pending": "pending", "a failed": "failed", "a succeeded": booked, "a charged_back": both,
			"b pending": "pending", "b failed": "failed", "b succeeded": booked, "b charged_back": both}},
		{Pending, "a", map[string]string{"a more back": both, "a less back": both, "a pending": stays, "a failed": "failed", "a succeeded": booked, "a charged_back": both,
			"b pending": stays, "b failed": stays, "b succeeded": booked, "b charged_back": both}},
		{Failed, "a", map[string]string{"a more back": both, "a less back": both, "a pending": stays, "a failed": stays, "a succeeded": booked, "a charged_back": both,
			"b pending": stays, "b failed": stays, "b succeeded": booked, "b charged_back": both}},
		{Succeeded, "a", map[string]string{"a more back": back, "a less back": back, "a pending": stays, "a failed": stays, "a succeeded": stays, "a charged_back": back,
			"b pending": stays, "b failed": stays, "b succeeded": twice, "b charged_back": twice}},
		{ChargedBack, "a", map[string]string{"a more back": back, "a less back": stays, "a pending": stays, "a failed": stays, "a succeeded": stays, "a charged_back": stays,
			"b pending": stays, "b failed": stays, "b succeeded": twice, "b charged_back": twice}},
	} {
		c.want["a too little"], c.want["a in dollars"], c.want["a too much"] = amount, amount, amount
		for name, charge := range news {
			p := Payment{Amount: eur(20), Status: c.status, ChargeID: c.charge}
			if p.Status == ChargedBack {
				p.ChargedBack = 10
			}
			d := decide(p, charge)
			got := d.to
			switch {
			case d.verdict == Break:
				got = "break " + string(d.class)
			case d.to == "":
				got = d.verdict
			}
			for _, m := range d.moves {
				kind, _, _ := strings.Cut(m.id, ":")
				got += " +" + kind
			}
			if got != c.want[name] {
				t.Errorf("%s by %q, then %s: %s, want %s", c.status, c.charge, name, got, c.want[name])
			}
			if d.to == ChargedBack && (d.back != charge.ChargedBack || d.moves[len(d.moves)-1].minor != charge.ChargedBack-p.ChargedBack) {
				t.Errorf("%s by %q, then %s: %+v", c.status, c.charge, name, d)
			}
			if (d.verdict == Ignored || d.verdict == Break) && (d.why == "" || len(d.moves) > 0) {
				t.Errorf("%s by %q, then %s: %+v", c.status, c.charge, name, d)
			}
		}
	}
}

// Of several refunds under one reference that which moved money counts, then one on its way: a
// failed one in front of it neither fails the refund nor has it asked for again.
func TestRefundThatMovedMoneyCountsMoreThanOneThatFailed(t *testing.T) {
	failed, pending, made := psp.Refund{ID: "1", Status: psp.Failed}, psp.Refund{ID: "2", Status: psp.Pending}, psp.Refund{ID: "3", Status: psp.Succeeded}
	for want, all := range map[string][]psp.Refund{"": nil, "1": {failed}, "2": {failed, pending}, "3": {failed, made, pending}} {
		if got, ok := bestRefund(all); got.ID != want || ok != (want != "") {
			t.Errorf("of %+v: %q, want %q", all, got.ID, want)
		}
	}
}
