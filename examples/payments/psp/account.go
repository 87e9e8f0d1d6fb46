package psp

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// account is what the entries of the ledger add up to. Whoever uses it holds the ledger's lock.
type account struct {
	charges   map[string]*Charge
	refunds   map[string]*Refund
	byRef     map[string][]*Charge
	refundRef map[string][]*Refund
	order     []*Charge        // as they were asked for
	answers   map[string]entry // the first entry under each idempotency key
	scenarios map[string]Scenario
	totals    Totals
}

func newAccount() account {
	return account{
		charges: map[string]*Charge{}, refunds: map[string]*Refund{},
		byRef: map[string][]*Charge{}, refundRef: map[string][]*Refund{},
		answers: map[string]entry{}, scenarios: map[string]Scenario{},
		totals: Totals{Charged: map[string]int64{}, Refunded: map[string]int64{}, ChargedBack: map[string]int64{}},
	}
}

// count enters e.
func (a *account) count(e entry) {
	if e.Key != "" && e.What != entryRepeat {
		a.answers[e.Key] = e // a forgotten key may get a second answer
	}
	switch e.What {
	case entryAccept:
		a.totals.Pending++
		a.charge(e, Pending)
	case entryDecline:
		a.totals.Declined++
		a.charge(e, Failed)
	case entryCharge:
		a.charged(e)
	case entryRefund, entryNoRefund:
		a.refund(e)
	case entryChargeback:
		a.totals.Chargebacks++
		a.totals.ChargedBack[string(e.Amount.Currency)] += e.Amount.Minor
		a.charges[e.Charge].ChargedBack += e.Amount.Minor
	case entryRepeat:
		a.totals.Repeated++
	case entryScenario:
		a.scenarios[e.Reference] = *e.Scenario
	}
}

func (a *account) charge(e entry, status string) *Charge {
	c := &Charge{ID: e.ID, Reference: e.Reference, Status: status, Amount: e.Amount, At: e.At}
	a.charges[c.ID] = c
	a.byRef[c.Reference] = append(a.byRef[c.Reference], c)
	a.order = append(a.order, c)
	return c
}

func (a *account) charged(e entry) {
	c := a.charges[e.ID]
	if c == nil {
		c = a.charge(e, Succeeded)
	} else {
		a.totals.Pending-- // it was accepted before
		c.Status = Succeeded
	}
	a.totals.Charges++
	a.totals.Charged[string(c.Amount.Currency)] += c.Amount.Minor
	taken := 0
	for _, each := range a.byRef[c.Reference] {
		if each.Status == Succeeded {
			taken++
		}
	}
	switch taken {
	case 1:
		a.totals.References++
	case 2:
		a.totals.ChargedMore++
	}
}

func (a *account) refund(e entry) {
	r := &Refund{ID: e.ID, Reference: e.Reference, Charge: e.Charge, Status: Succeeded, Amount: e.Amount, At: e.At}
	if e.What == entryNoRefund {
		r.Status = Failed
	} else {
		a.totals.Refunds++
		a.totals.Refunded[string(e.Amount.Currency)] += e.Amount.Minor
		a.charges[e.Charge].Refunded += e.Amount.Minor
	}
	a.refunds[r.ID] = r
	if r.Reference != "" {
		a.refundRef[r.Reference] = append(a.refundRef[r.Reference], r)
	}
	a.charges[e.Charge].Refunds = append(a.charges[e.Charge].Refunds, *r)
}

// known is the first answer under a key that is not forgotten.
func (a *account) known(key string, life time.Duration, now time.Time) (entry, bool) {
	e, ok := a.answers[key]
	if ok && life > 0 && now.Sub(e.At) >= life {
		return entry{}, false
	}
	return e, ok
}

func (a *account) nextCharge() string { return fmt.Sprintf("ch_%06d", len(a.charges)+1) }
func (a *account) nextRefund() string { return fmt.Sprintf("re_%06d", len(a.refunds)+1) }

// left is what of a charge can still be given back.
func (a *account) left(id string) (c *Charge, minor int64) {
	c = a.charges[id]
	if c == nil || c.Status != Succeeded {
		return c, 0
	}
	return c, c.Amount.Minor - c.Refunded - c.ChargedBack
}

func (c *Charge) view() Charge {
	v := *c
	v.Refunds = slices.Clone(c.Refunds)
	return v
}

func (t Totals) clone() Totals {
	t.Charged, t.Refunded, t.ChargedBack = maps.Clone(t.Charged), maps.Clone(t.Refunded), maps.Clone(t.ChargedBack)
	return t
}
