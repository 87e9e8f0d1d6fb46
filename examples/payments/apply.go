package payments

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

// News is what somebody learned of a payment from the provider.
type News struct {
	Charge psp.Charge // as the provider told of it; its Reference is the payment's id
	By     string     // who says so, for instance "webhook evt_1"
	Why    string     // of a failure
}

// Verdict is what became of news.
type Verdict struct {
	Verdict string          // Applied, Ignored, Break or Unmatched
	Class   reconcile.Class // of a break
	Why     string
	Payment Payment // as it is from now on
}

// Apply brings a payment to what the provider says of it: the one transition that the handler,
// webhooks, the return page, the reconciler and operators use. It may be called any number of
// times, by any number of callers at once: only the call that made the transition writes
// entries and enqueues jobs, and in the same transaction as the transition. News that do not fit
// get a break, by a job.
func (b *Book) Apply(ctx context.Context, n News) (v Verdict, err error) {
	err = b.inTx(ctx, func(tx *sql.Tx) error {
		if v, err = b.apply(ctx, tx, n); err != nil {
			return err
		}
		return b.reportMisfit(ctx, tx, n, v)
	})
	if err != nil {
		return Verdict{}, fmt.Errorf("apply news of payment %s: %w", n.Charge.Reference, err)
	}
	return v, nil
}

func (b *Book) apply(ctx context.Context, tx *sql.Tx, n News) (Verdict, error) {
	c := n.Charge
	if !isID(c.Reference) {
		return Verdict{Verdict: Unmatched, Class: reconcile.MissingHere, Why: "no payment can have this reference"}, nil
	}
	p, err := scanPayment(tx.QueryRowContext(ctx, b.sql.Lock, c.Reference))
	if errors.Is(err, sql.ErrNoRows) {
		return Verdict{Verdict: Unmatched, Class: reconcile.MissingHere, Why: "there is no payment of this reference"}, nil
	}
	if err != nil {
		return Verdict{}, err
	}
	d := decide(p, c)
	if d.to == Failed {
		d.why = n.Why
	}
	if d.to != "" {
		if p, err = b.change(ctx, tx, p, n, d); err != nil {
			return Verdict{}, err
		}
	}
	v := Verdict{Verdict: d.verdict, Class: d.class, Why: d.why}
	if p.Taken() && p.ChargeID == c.ID && d.verdict != Break {
		for _, r := range c.Refunds {
			if err := b.applyRefund(ctx, tx, &p, r, &v); err != nil {
				return Verdict{}, err
			}
		}
	}
	v.Payment, err = scanPayment(tx.QueryRowContext(ctx, b.sql.Payment, p.ID))
	return v, err
}

// change makes the transition, under the lock.
func (b *Book) change(ctx context.Context, tx *sql.Tx, p Payment, n News, d decision) (Payment, error) {
	res, err := tx.ExecContext(ctx, b.sql.Settle, p.ID, p.Rev, d.to, d.charge, d.why, d.back)
	if err != nil {
		return p, err
	}
	if rows, err := res.RowsAffected(); err != nil || rows != 1 {
		return p, errors.Join(err, fmt.Errorf("payment %s changed under its lock", p.ID))
	}
	evidence, err := json.Marshal(n.Charge)
	if err != nil {
		return p, err
	}
	if _, err := tx.ExecContext(ctx, b.sql.Transition, p.ID, p.Rev+1, p.Status, d.to, d.charge, n.By, d.why, string(evidence)); err != nil {
		return p, err
	}
	for _, m := range d.moves {
		if err := b.move(ctx, tx, p, m); err != nil {
			return p, err
		}
	}
	was := p
	p.Status, p.ChargeID, p.Why, p.ChargedBack, p.Rev = d.to, d.charge, d.why, d.back, p.Rev+1
	if d.to != Succeeded {
		return p, nil
	}
	if was.Status == Failed && b.RefundLate {
		// Its order is gone by now: the payer gets the money back, and no receipt.
		return p, b.askRefund(ctx, tx, Refund{ID: "late_" + p.ID, PaymentID: p.ID, Amount: p.Amount}, p)
	}
	_, err = b.enqueue(ctx, tx, Receipt{PaymentID: p.ID}, pacht.IdempotencyKey("receipt:"+p.ID))
	return p, err
}

// move writes one movement into the ledger.
func (b *Book) move(ctx context.Context, tx *sql.Tx, p Payment, m move) error {
	if _, err := tx.ExecContext(ctx, b.sql.Book, m.id, m.to, m.from, p.ID, m.minor, string(p.Amount.Currency)); err != nil {
		return fmt.Errorf("book %s: %w", m.id, err)
	}
	return nil
}
