package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments/psp"
)

// Refund gives money back, as Charge takes it.
func (h *Handlers) Refund(ctx context.Context, job *pacht.Job[GiveBack]) error {
	r, err := h.book.Refund(ctx, job.Args.RefundID)
	if errors.Is(err, pacht.ErrNotFound) {
		return pacht.Permanent(err)
	}
	if err != nil {
		return err
	}
	p, err := h.book.Payment(ctx, r.PaymentID)
	if err != nil {
		return err
	}
	// Money that the payer's bank has taken back meanwhile is not given back once more.
	needless := r.Status != Pending || p.Status != Succeeded
	why := fmt.Sprintf("it was not asked for: the payment is %s, the refund %s", p.Status, r.Status)
	if needless {
		asked, err := h.asked(ctx, job.ID)
		if err != nil {
			return err
		}
		if !asked {
			return h.write(ctx, job.Held, func(ctx context.Context, tx *sql.Tx) error {
				return h.book.failRefund(ctx, tx, r.ID, why)
			})
		}
	}
	order := psp.RefundOrder{Reference: r.ID, Charge: p.ChargeID, Amount: r.Amount}
	made, err := h.refund.DoWith(ctx, job, order, func(ctx context.Context, call effect.Call) (psp.Refund, error) {
		if needless {
			return psp.Refund{}, effect.Rejected(errors.New(why))
		}
		made, err := h.provider.Refund(ctx, call.Key, order)
		return made, class(err)
	})
	var refused *effect.FailedError
	if errors.As(err, &refused) {
		return h.write(ctx, job.Held, func(ctx context.Context, tx *sql.Tx) error {
			return h.book.failRefund(ctx, tx, r.ID, refused.Reason)
		})
	}
	if err != nil {
		return err
	}
	err = h.write(ctx, job.Held, func(ctx context.Context, tx *sql.Tx) error {
		v, err := h.book.refunded(ctx, tx, p.ID, made)
		if err == nil && v.Verdict == Break {
			err = pacht.UnknownOutcome(fmt.Errorf("%w: %s: %s", ErrBreak, v.Class, v.Why))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write down refund %s: %w", r.ID, err)
	}
	return nil
}

// refunded locks the payment and applies one refund.
func (b *Book) refunded(ctx context.Context, tx *sql.Tx, payment string, r psp.Refund) (v Verdict, err error) {
	p, err := scanPayment(tx.QueryRowContext(ctx, b.sql.Lock, payment))
	if err != nil {
		return v, err
	}
	v = Verdict{Verdict: Ignored, Payment: p}
	return v, b.applyRefund(ctx, tx, &p, r, &v)
}

// probeRefund asks the provider what became of a refund.
func (h *Handlers) probeRefund(ctx context.Context, e pacht.Effect) (v effect.Verdict[psp.Refund], err error) {
	found, err := h.provider.Refunds(ctx, e.Reference)
	if err != nil {
		return v, err
	}
	r, ok := bestRefund(found)
	switch {
	case !ok:
		v.State = effect.NotFound
	case r.Status == psp.Failed:
		v.State, v.Reason = effect.Failed, "the provider has it as failed, "+r.ID
	default:
		v.State, v.Result = effect.Succeeded, r
	}
	return v, nil
}

// bestRefund is the one that counts of all that the provider made for one reference, as best is of
// charges.
func bestRefund(all []psp.Refund) (r psp.Refund, ok bool) {
	for _, each := range all {
		if !ok || rank[each.Status] > rank[r.Status] || each.Status == psp.Failed && r.Status == psp.Failed {
			r, ok = each, true
		}
	}
	return r, ok
}
