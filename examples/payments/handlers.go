package payments

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/worker"
)

// Provider moves money, and can be asked what became of it. *psp.Client is one.
type Provider interface {
	Charge(ctx context.Context, key string, o psp.Order) (psp.Charge, error)
	Refund(ctx context.Context, key string, o psp.RefundOrder) (psp.Refund, error)
	Lookup(ctx context.Context, reference string) ([]psp.Charge, error)
	Refunds(ctx context.Context, reference string) ([]psp.Refund, error)
}

// Promises is what the provider's contract says.
type Promises struct {
	KeyLife     time.Duration // how long it remembers an idempotency key
	Consistency time.Duration // how long a look-up may not find what was done
	MinLease    time.Duration // more than a call takes; 0 = half of a job's TTL
}

// Handlers do the jobs of payments. Made by NewHandlers.
type Handlers struct {
	book     *Book
	provider Provider
	log      pacht.EffectLog
	breaks   pacht.BreakLog
	charge   *effect.Effect[psp.Charge]
	refund   *effect.Effect[psp.Refund]
}

// Log is what handlers need of a store beside the book.
type Log interface {
	pacht.EffectLog
	pacht.BreakLog
}

// bookingTime bounds the transaction that writes down what the provider said.
const bookingTime = 5 * time.Second

// NewHandlers defines the effects of payments and makes their handlers.
func NewHandlers(b *Book, provider Provider, log Log, all *effect.Effects, p Promises) (*Handlers, error) {
	h := &Handlers{book: b, provider: provider, log: log, breaks: log}
	var err error
	h.charge, err = effect.Define(all, "charge", effect.Spec[psp.Charge]{
		KeyLife: p.KeyLife, Consistency: p.Consistency, MinLease: p.MinLease, Probe: h.probeCharge,
		Reference: func(job pacht.JobInfo) string { return Reference(job) },
	})
	if err != nil {
		return nil, err
	}
	h.refund, err = effect.Define(all, "refund", effect.Spec[psp.Refund]{
		KeyLife: p.KeyLife, Consistency: p.Consistency, MinLease: p.MinLease, Probe: h.probeRefund,
		Reference: func(job pacht.JobInfo) string { return Reference(job) },
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Reference is the name under which a job's call is known to the provider: the id of the
// payment or of the refund; "" if the job makes none.
func Reference(job pacht.JobInfo) string {
	var args struct {
		PaymentID string `json:"payment_id"`
		RefundID  string `json:"refund_id"`
	}
	if err := json.Unmarshal(job.Args, &args); err != nil {
		return ""
	}
	switch job.Kind {
	case Charge{}.Kind():
		return args.PaymentID
	case GiveBack{}.Kind():
		return args.RefundID
	}
	return ""
}

// class says what an error of the provider's client means for the effect. Whatever is not known
// for certain is unknown.
func class(err error) error {
	switch {
	case errors.Is(err, psp.ErrDeclined), errors.Is(err, psp.ErrRefused):
		return effect.Rejected(err)
	case errors.Is(err, psp.ErrBusy), errors.Is(err, psp.ErrTurnedAway):
		return effect.RejectedForNow(psp.RetryAfter(err), err)
	case errors.Is(err, psp.ErrNotSent):
		return effect.NotSent(err)
	}
	return err
}

// write makes the transaction that ends a job: what is to be written, and the end of the job.
// It is tried even when the handler was told to stop, because the money has moved. Whether we
// may still write is for the fence to say: CompleteTx refuses a lease that was closed or taken,
// and then nothing of this is committed (R4).
func (h *Handlers) write(ctx context.Context, job *pacht.Held, what func(ctx context.Context, tx *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookingTime)
	defer cancel()
	return h.book.inTx(ctx, func(tx *sql.Tx) error {
		if err := what(ctx, tx); err != nil {
			return err
		}
		return job.CompleteTx(ctx, h.book.tx(tx))
	})
}

// ErrBreak: what the provider says does not fit what we have. No retry will mend that.
var ErrBreak = errors.New("the provider's record does not fit ours")

// settle writes news down and ends the job; news that do not fit park it for the reconciler,
// which tells a person.
func (h *Handlers) settle(ctx context.Context, job *pacht.Held, n News) error {
	n.By = fmt.Sprintf("job %d, token %d", job.ID, job.Token)
	err := h.write(ctx, job, func(ctx context.Context, tx *sql.Tx) error {
		v, err := h.book.apply(ctx, tx, n)
		switch {
		case err != nil:
			return err
		case v.Verdict == Break, v.Verdict == Unmatched:
			return pacht.UnknownOutcome(fmt.Errorf("%w: %s: %s", ErrBreak, v.Class, v.Why))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write down that payment %s is %s: %w", n.Charge.Reference, n.Charge.Status, err)
	}
	return nil
}

// Receipt tells the payer, once the success is committed, and looks whether it is likely that the
// payer meant to pay only once. Mail is an effect too, but one that may come twice.
func (h *Handlers) Receipt(ctx context.Context, job *pacht.Job[Receipt]) error {
	if err := h.reportDuplicates(ctx, job.Args.PaymentID); err != nil {
		return fmt.Errorf("look for likely duplicates of payment %s: %w", job.Args.PaymentID, err)
	}
	return job.SetOutput(map[string]string{"told": job.Args.PaymentID})
}

// All lists the handlers, for a worker.
func (h *Handlers) All() []worker.Handler {
	return []worker.Handler{worker.Handle(h.Charge), worker.Handle(h.Refund), worker.Handle(h.Receipt), worker.Handle(h.Parked), worker.Handle(h.Misfit)}
}
