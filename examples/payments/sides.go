package payments

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

// Ours is what the reconciler sees of the book. A payment and a refund are records of their own.
type Ours struct{ Book *Book }

// Theirs is what it sees of the provider.
type Theirs struct {
	Provider interface {
		Lookup(ctx context.Context, reference string) ([]psp.Charge, error)
		Refunds(ctx context.Context, reference string) ([]psp.Refund, error)
		List(ctx context.Context, since time.Time, cursor string) ([]psp.Charge, string, error)
	}
}

var (
	_ reconcile.Ours   = Ours{}
	_ reconcile.Theirs = Theirs{}
	_ reconcile.Lister = Theirs{}
)

// Reference implements reconcile.Ours.
func (Ours) Reference(job pacht.JobInfo) string { return Reference(job) }

// Find implements reconcile.Ours.
func (o Ours) Find(ctx context.Context, reference string) (reconcile.Record, error) {
	p, err := o.Book.Payment(ctx, reference)
	if err == nil {
		return p.record(), nil
	}
	if !errors.Is(err, pacht.ErrNotFound) {
		return reconcile.Record{}, err
	}
	r, err := o.Book.Refund(ctx, reference)
	switch {
	case errors.Is(err, pacht.ErrNotFound):
		return reconcile.Record{Reference: reference, State: reconcile.NotFound}, nil
	case err != nil:
		return reconcile.Record{}, err
	}
	return r.record(), nil
}

// Pending implements reconcile.Ours, for payments and refunds.
func (o Ours) Pending(ctx context.Context, longer time.Duration, after string, limit int) ([]reconcile.Record, error) {
	payments, err := o.Book.PendingLonger(ctx, longer, after, limit)
	if err != nil {
		return nil, err
	}
	refunds, err := o.Book.PendingRefunds(ctx, longer, after, limit)
	if err != nil {
		return nil, err
	}
	var page []reconcile.Record
	for _, p := range payments {
		page = append(page, p.record())
	}
	for _, r := range refunds {
		page = append(page, r.record())
	}
	slices.SortFunc(page, func(a, b reconcile.Record) int { return strings.Compare(a.Reference, b.Reference) })
	return page[:min(len(page), limit)], nil
}

// Reversible implements reconcile.Ours.
func (o Ours) Reversible(ctx context.Context, after string, limit int) (page []reconcile.Record, err error) {
	payments, err := o.Book.Reversible(ctx, after, limit)
	for _, p := range payments {
		page = append(page, p.record())
	}
	return page, err
}

// Heal implements reconcile.Ours.
func (o Ours) Heal(ctx context.Context, f *reconcile.Finding) error {
	var found detail
	if err := json.Unmarshal(f.Theirs.Detail, &found); err != nil {
		return fmt.Errorf("heal %s: what was found cannot be read: %w", f.Theirs.Reference, err)
	}
	err := o.Book.inTx(ctx, func(tx *sql.Tx) error {
		v, err := o.heal(ctx, tx, f, found)
		switch {
		case err != nil:
			return err
		case v.Verdict == Break, v.Verdict == Unmatched:
			return fmt.Errorf("%w: %w: %s: %s", reconcile.ErrHold, ErrBreak, v.Class, v.Why)
		}
		return f.CommitTx(ctx, o.Book.tx(tx))
	})
	if err != nil {
		return fmt.Errorf("heal %s: %w", f.Ours.Reference, err)
	}
	return nil
}

func (o Ours) heal(ctx context.Context, tx *sql.Tx, f *reconcile.Finding, found detail) (Verdict, error) {
	if r := found.Refund; r != nil {
		ours, err := scanRefund(tx.QueryRowContext(ctx, o.Book.sql.Refund, f.Ours.Reference))
		if err != nil {
			return Verdict{}, err
		}
		return o.Book.refunded(ctx, tx, ours.PaymentID, *r)
	}
	if found.Charge == nil {
		return Verdict{}, errors.New("nothing was found to heal it with")
	}
	n := News{Charge: *found.Charge, By: "reconciler"}
	if n.Charge.Status == psp.Failed {
		n.Why = "the provider has it as failed, " + n.Charge.ID
	}
	return o.Book.apply(ctx, tx, n)
}

func (p Payment) record() reconcile.Record {
	r := reconcile.Record{Reference: p.ID, ProviderID: p.ChargeID, State: reconcile.State(p.Status), Amount: p.Amount, At: p.CreatedAt}
	if p.Taken() {
		r.Refunded, r.ChargedBack, r.Charges = p.Refunded, p.ChargedBack, 1
	}
	if p.Status == Succeeded && p.Refunded > 0 {
		r.State = reconcile.Refunded
	}
	return r
}

func (r Refund) record() reconcile.Record {
	return reconcile.Record{Reference: r.ID, ProviderID: r.ProviderID, State: reconcile.State(r.Status), Amount: r.Amount}
}

// detail is what the provider said, as evidence and to heal with.
type detail struct {
	Charge  *psp.Charge  `json:"charge,omitempty"`  // the attempt that counts
	Charges []psp.Charge `json:"charges,omitempty"` // all of them, if there are more
	Refund  *psp.Refund  `json:"refund,omitempty"`
}

// Lookup implements reconcile.Theirs.
func (t Theirs) Lookup(ctx context.Context, reference string) (reconcile.Record, error) {
	charges, err := t.Provider.Lookup(ctx, reference)
	if err != nil {
		return reconcile.Record{}, err
	}
	if len(charges) > 0 {
		return recordOf(charges)
	}
	refunds, err := t.Provider.Refunds(ctx, reference)
	if err != nil {
		return reconcile.Record{}, err
	}
	if r, ok := bestRefund(refunds); ok {
		raw, err := json.Marshal(detail{Refund: &r})
		return reconcile.Record{
			Reference: r.Reference, ProviderID: r.ID, State: reconcile.State(r.Status), Amount: r.Amount, At: r.At, Detail: raw,
		}, err
	}
	return reconcile.Record{Reference: reference, State: reconcile.NotFound}, nil
}

// List implements reconcile.Lister. One record that is garbage is inconclusive, and the others
// are not.
func (t Theirs) List(ctx context.Context, since time.Time, cursor string) (page []reconcile.Record, next string, err error) {
	charges, next, err := t.Provider.List(ctx, since, cursor)
	if err != nil {
		return nil, "", err
	}
	for _, c := range charges {
		if c.Status == "" {
			page = append(page, reconcile.Record{Reference: c.Reference, ProviderID: c.ID})
			continue
		}
		r, err := recordOf([]psp.Charge{c})
		if err != nil {
			return nil, "", err
		}
		page = append(page, r)
	}
	return page, next, nil
}

// recordOf sums up what the provider has under one reference.
func recordOf(charges []psp.Charge) (reconcile.Record, error) {
	c, _ := best(charges) // there is one
	r := reconcile.Record{Reference: c.Reference, ProviderID: c.ID, State: reconcile.State(c.Status), Amount: c.Amount, At: c.At}
	for _, each := range charges {
		if each.Status == psp.Succeeded {
			r.Charges++
			r.Refunded += each.Refunded
			r.ChargedBack += each.ChargedBack
		}
	}
	switch {
	case c.Status == psp.Succeeded && r.ChargedBack > 0:
		r.State = reconcile.ChargedBack
	case c.Status == psp.Succeeded && r.Refunded > 0:
		r.State = reconcile.Refunded
	}
	d := detail{Charge: &c}
	if len(charges) > 1 {
		d.Charges = charges
	}
	raw, err := json.Marshal(d)
	r.Detail = raw
	return r, err
}
