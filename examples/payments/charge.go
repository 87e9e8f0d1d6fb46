package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/money"
)

// Charge takes the money of one payment. It may run any number of times, also twice at once:
// the effect lets one attempt call, under a key that never changes, and the next one asks; and
// only the holder of the lease can write down what came of it.
func (h *Handlers) Charge(ctx context.Context, job *pacht.Job[Charge]) error {
	p, err := h.book.Payment(ctx, job.Args.PaymentID)
	if errors.Is(err, pacht.ErrNotFound) {
		return pacht.Permanent(err)
	}
	if err != nil {
		return err
	}
	if p.Status != Pending || p.Expired {
		asked, err := h.asked(ctx, job.ID)
		if err != nil {
			return err
		}
		switch {
		case asked: // go on, to learn and write down what came of it
		case p.Status != Pending:
			return h.settle(ctx, job.Held, News{Charge: psp.Charge{Reference: p.ID, Status: psp.Failed}, Why: "it was settled before it was charged"})
		default:
			return h.expire(ctx, job, p)
		}
	}
	order := psp.Order{Reference: p.ID, Amount: money.Amount{Minor: job.Args.AmountMinor, Currency: money.Currency(job.Args.Currency)}}
	charge, err := h.charge.DoWith(ctx, job, order, func(ctx context.Context, call effect.Call) (psp.Charge, error) {
		if p.Status != Pending || p.Expired {
			// It was asked what came of the last call, and the provider would know of it by now.
			return psp.Charge{}, effect.Rejected(errors.New("it is not called again: it was settled, or its time is over"))
		}
		c, err := h.provider.Charge(ctx, call.Key, order)
		return c, class(err)
	})
	var refused *effect.FailedError
	switch {
	case errors.As(err, &refused):
		// A decline is an answer: the payment has failed, and the job is done.
		return h.settle(ctx, job.Held, News{Charge: psp.Charge{Reference: p.ID, Status: psp.Failed, Amount: order.Amount}, Why: refused.Reason})
	case err != nil:
		return err
	}
	return h.settle(ctx, job.Held, News{Charge: charge})
}

// asked says whether the provider may have been asked already to do what this job is for.
func (h *Handlers) asked(ctx context.Context, job pacht.ID) (bool, error) {
	effects, err := h.log.Effects(ctx, job)
	for _, e := range effects {
		if e.State != pacht.EffectReady {
			return true, err
		}
	}
	return false, err
}

// expire ends a payment whose time is over and for which nothing was asked: no call is made, and
// what the provider says is written down (S107).
func (h *Handlers) expire(ctx context.Context, job *pacht.Job[Charge], p Payment) error {
	found, err := h.provider.Lookup(ctx, p.ID)
	if err != nil {
		return fmt.Errorf("payment %s is past its time; ask the provider: %w", p.ID, err)
	}
	if c, ok := best(found); ok {
		return h.settle(ctx, job.Held, News{Charge: c})
	}
	return h.settle(ctx, job.Held, News{Charge: psp.Charge{Reference: p.ID, Status: psp.Failed, Amount: p.Amount}, Why: "expired: it was not charged within its time"})
}

// probeCharge asks the provider what became of a charge.
func (h *Handlers) probeCharge(ctx context.Context, e pacht.Effect) (v effect.Verdict[psp.Charge], err error) {
	found, err := h.provider.Lookup(ctx, e.Reference)
	if err != nil {
		return v, err
	}
	c, ok := best(found)
	switch {
	case !ok:
		v.State = effect.NotFound
	case c.Status == psp.Failed:
		v.State, v.Reason = effect.Failed, "the provider has it as failed, "+c.ID
	default:
		v.State, v.Result = effect.Succeeded, c
	}
	return v, nil
}

var rank = map[string]int{psp.Failed: 1, psp.Pending: 2, psp.Succeeded: 3}

// best is the attempt that counts of all that the provider made for one reference: one that took
// money, else one that is on its way, else the last that failed.
func best(all []psp.Charge) (c psp.Charge, ok bool) {
	for _, each := range all {
		if !ok || rank[each.Status] > rank[c.Status] || each.Status == psp.Failed && c.Status == psp.Failed {
			c, ok = each, true
		}
	}
	return c, ok
}
