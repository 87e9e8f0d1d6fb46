package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

// ErrRefund: this payment cannot be given back, or not so much of it.
var ErrRefund = errors.New("cannot be refunded")

// AskRefund stores a refund and the job that asks the provider for it: both, or neither. What
// was given back before, and what is on its way, cannot be given back again.
func (b *Book) AskRefund(ctx context.Context, r Refund) error {
	err := b.inTx(ctx, func(tx *sql.Tx) error { return b.lockAndAskRefund(ctx, tx, r) })
	if err != nil {
		return fmt.Errorf("refund %s of payment %s: %w", r.ID, r.PaymentID, err)
	}
	return nil
}

func (b *Book) lockAndAskRefund(ctx context.Context, tx *sql.Tx, r Refund) error {
	if !isID(r.PaymentID) {
		return pacht.ErrNotFound
	}
	p, err := scanPayment(tx.QueryRowContext(ctx, b.sql.Lock, r.PaymentID))
	if errors.Is(err, sql.ErrNoRows) {
		return pacht.ErrNotFound
	}
	if err != nil {
		return err
	}
	return b.askRefund(ctx, tx, r, p)
}

// askRefund is for a locked payment.
func (b *Book) askRefund(ctx context.Context, tx *sql.Tx, r Refund, p Payment) error {
	left := p.Amount.Minor - p.Refunded - p.Refunding
	switch {
	case r.ID == "" || len(r.ID) > 150:
		return &pacht.InvalidError{Field: "refund id", Value: fmt.Sprintf("%d bytes", len(r.ID)), Bound: "1 to 150 bytes"}
	case r.Amount.Minor <= 0:
		return &pacht.InvalidError{Field: "amount_minor", Value: r.Amount.String(), Bound: "more than 0"}
	case p.Status != Succeeded:
		return fmt.Errorf("%w: it is %s", ErrRefund, p.Status)
	case r.Amount.Currency != p.Amount.Currency:
		return fmt.Errorf("%w: %s of a payment of %s", ErrRefund, r.Amount, p.Amount)
	case r.Amount.Minor > left:
		return fmt.Errorf("%w: %s asked for, of %s there are %d minor units left", ErrRefund, r.Amount, p.Amount, left)
	}
	if _, err := tx.ExecContext(ctx, b.sql.RefundCreate, r.ID, p.ID, r.Amount.Minor, string(r.Amount.Currency)); err != nil {
		return err
	}
	_, err := b.enqueue(ctx, tx, GiveBack{RefundID: r.ID, PaymentID: p.ID}, pacht.IdempotencyKey("refund:"+r.ID))
	return err
}

// applyRefund brings a refund of a locked payment to what the provider says, and adds one that
// was made at the provider's side.
func (b *Book) applyRefund(ctx context.Context, tx *sql.Tx, p *Payment, r psp.Refund, v *Verdict) error {
	id := r.Reference
	if id == "" {
		id = "there_" + r.ID
	}
	ours, err := scanRefund(tx.QueryRowContext(ctx, b.sql.Refund, id))
	known := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	switch {
	case known && (ours.PaymentID != p.ID || ours.Amount != r.Amount):
		v.Verdict, v.Class = Break, reconcile.AmountDiffers
		v.Why = fmt.Sprintf("refund %s is %s of %s here and %s of %s there", id, ours.Amount, ours.PaymentID, r.Amount, p.ID)
		return nil
	case known && ours.Status == Succeeded, known && r.Status == ours.Status, !known && r.Status != Succeeded:
		return nil
	case known && r.Status == Pending:
		return nil
	case r.Status == Succeeded && r.Amount.Currency == p.Amount.Currency && r.Amount.Minor > p.Amount.Minor-p.ChargedBack-p.Refunded:
		v.Verdict, v.Class = Break, reconcile.AmountDiffers
		v.Why = fmt.Sprintf("refund %s of %s: of %s %d were given back and %d charged back before", r.ID, r.Amount, p.Amount, p.Refunded, p.ChargedBack)
		return nil
	case known:
		var provider any
		if r.ID != "" {
			provider = r.ID
		}
		if _, err := tx.ExecContext(ctx, b.sql.RefundSettle, id, r.Status, provider, ""); err != nil {
			return err
		}
	case r.Amount.Currency != p.Amount.Currency:
		v.Verdict, v.Class, v.Why = Break, reconcile.AmountDiffers, fmt.Sprintf("refund %s of %s of a payment of %s", r.ID, r.Amount, p.Amount)
		return nil
	default:
		if _, err := tx.ExecContext(ctx, b.sql.RefundThere, id, p.ID, r.Amount.Minor, string(r.Amount.Currency), r.ID); err != nil {
			return err
		}
	}
	if v.Verdict != Break { // of another of its refunds
		v.Verdict = Applied
	}
	if r.Status != Succeeded {
		return nil
	}
	p.Refunded += r.Amount.Minor
	return b.move(ctx, tx, *p, move{"refund:" + r.ID, "refunds", "provider", r.Amount.Minor})
}

// failRefund ends a refund that the provider refused for good.
func (b *Book) failRefund(ctx context.Context, tx *sql.Tx, id, why string) error {
	_, err := tx.ExecContext(ctx, b.sql.RefundSettle, id, Failed, nil, why)
	return err
}
