package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments/psp"
)

// Provider takes money. *psp.Client is one.
type Provider interface {
	Charge(ctx context.Context, key string, charge psp.Charge) (psp.Entry, error)
}

// Charger handles Charge jobs.
type Charger struct {
	Book     *Book
	Provider Provider
}

// What a charge job has reached, in the table of steps.
const (
	StepUnanswered = "unanswered" // the provider was asked and gave no answer
	StepCharged    = "charged"    // in one transaction with the payment's mark
	StepDeclined   = "declined"
)

const (
	// answerGrace is how much longer than its lease a call waits for an answer that may
	// already be on its way. The call cannot be unsent, and its answer is worth a moment.
	answerGrace = 200 * time.Millisecond
	// bookingTime bounds the transaction that writes down what the provider said.
	bookingTime = 5 * time.Second
)

// Handle charges one payment. It is safe to run any number of times, also twice at once: the
// provider's key is the payment's id and never the attempt's number, so it charges once; and
// only the holder of the lease can mark the payment paid.
func (c *Charger) Handle(ctx context.Context, job *pacht.Job[Charge]) error {
	asked := psp.Charge{Reference: job.Args.PaymentID, AmountMinor: job.Args.AmountMinor, Currency: job.Args.Currency}
	call, done := outlive(ctx, answerGrace)
	got, err := c.Provider.Charge(call, "charge:"+job.Args.PaymentID, asked)
	done()
	switch {
	case errors.Is(err, psp.ErrDeclined):
		return c.decline(ctx, job, err)
	case errors.Is(err, psp.ErrRefused):
		return pacht.Permanent(err)
	case err != nil:
		return c.unanswered(ctx, job, err)
	case got.Charge != asked:
		return pacht.UnknownOutcome(fmt.Errorf("the provider answered with another charge: asked %+v, got %+v", asked, got.Charge))
	}
	return c.paid(ctx, job, got.ID)
}

// unanswered leaves word for whoever looks at the job. The provider may have charged or not:
// asking again with the same key is safe.
func (c *Charger) unanswered(ctx context.Context, job *pacht.Job[Charge], err error) error {
	if ctx.Err() != nil {
		return err // we were told to stop, which is no news of the provider
	}
	step := job.SetStep(ctx, StepUnanswered, map[string]any{"attempt": job.Attempt, "said": err.Error()})
	return errors.Join(err, step)
}

// paid writes down that the money was taken: payment, step and job in one transaction. It is
// tried even when the handler was told to stop, because the money has moved. Whether we may
// still write is for the fence to say: CompleteTx refuses a lease that was closed or taken,
// and then nothing of this is committed (R4).
func (c *Charger) paid(ctx context.Context, job *pacht.Job[Charge], chargeRef string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookingTime)
	defer cancel()
	err := c.Book.inTx(ctx, func(tx *sql.Tx) error {
		if err := c.mark(ctx, tx, c.Book.sql.Pay, job.Args.PaymentID, chargeRef); err != nil {
			return err
		}
		queue := c.Book.tx(tx)
		if err := job.SetStepTx(ctx, queue, StepCharged, map[string]any{"charge": chargeRef}); err != nil {
			return err
		}
		return job.CompleteTx(ctx, queue)
	})
	if err != nil {
		return fmt.Errorf("mark payment %s as paid by %s: %w", job.Args.PaymentID, chargeRef, err)
	}
	return nil
}

// decline writes down the provider's refusal, fenced by the step, and ends the job for good.
// A crash in between makes the next attempt hear the same refusal again.
func (c *Charger) decline(ctx context.Context, job *pacht.Job[Charge], why error) error {
	err := c.Book.inTx(ctx, func(tx *sql.Tx) error {
		if err := c.mark(ctx, tx, c.Book.sql.Decline, job.Args.PaymentID); err != nil {
			return err
		}
		return job.SetStepTx(ctx, c.Book.tx(tx), StepDeclined, nil)
	})
	if err != nil {
		return fmt.Errorf("mark payment %s as declined: %w", job.Args.PaymentID, err)
	}
	return pacht.Permanent(why)
}

// mark changes one payment, or says why it does not fit what the provider said: a person must
// look at that, and no retry will mend it.
func (c *Charger) mark(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	res, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 1 {
		return err
	}
	p, err := scan(tx.QueryRowContext(ctx, c.Book.sql.Payment, args[0]))
	if errors.Is(err, sql.ErrNoRows) {
		return pacht.Permanent(fmt.Errorf("there is no payment %v", args[0]))
	}
	if err != nil {
		return err
	}
	return pacht.Permanent(fmt.Errorf("it is %s already (charge %q)", p.Status, p.ChargeRef))
}

// outlive is a context that ends a while after ctx does.
func outlive(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(after, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() { stop(); cancel(nil) }
}
