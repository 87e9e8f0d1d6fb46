package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// hold is one lease that this process holds: the job, how long it may still believe in the
// lease, and what its handler has said. It is the pacht.Keeper behind the handler's Job.
type hold struct {
	w   *Worker
	q   *queue
	job pacht.JobInfo

	ctx    context.Context
	cancel context.CancelCauseFunc

	claimed clock.Instant // from before the claim was sent

	mu        sync.Mutex
	from      clock.Instant // from before the last claim or renewal was sent
	left      time.Duration // how long the lease lasts from then on
	until     time.Time     // lease_until by the database's clock
	asked     clock.Instant // when the last renewal was tried
	retry     time.Duration // not 0: the last renewal failed, try again this long after asked
	stopped   clock.Instant // when its handler was cancelled
	cause     error         // why; nil while it may work
	wedged    bool
	forfeited bool // a renewal was refused: the lease is not ours any more
	slot      int  // 1 if it takes one of its queue
	started   bool // its handler may run
	returned  bool // its handler has returned, or will not start
	tried     bool // CompleteTx was called: what became of it, only the ledger knows
	closing   bool // it closed the lease in a transaction, which may be open, committed or rolled back
	guarded   bool // as far as we know that transaction still has the row locked, or has committed
	output    json.RawMessage
	effects   map[string]bool // those called or asked about under this lease; true: without an answer
}

// margin is how long before lease_until the holder stops itself (R8).
func margin(ttl time.Duration) time.Duration { return min(ttl/10, 2*time.Second) }

// newHold makes the hold of a job that was claimed, or found held, by a call sent at the
// given time and answered with the given database time.
func newHold(w *Worker, q *queue, job pacht.JobInfo, sent clock.Instant, now time.Time) *hold {
	h := &hold{w: w, q: q, job: job, claimed: sent, from: sent, asked: sent, until: job.LeaseUntil}
	h.left = job.LeaseUntil.Sub(now)
	// The worker stops each hold itself, so none has to be registered with the base context.
	h.ctx, h.cancel = context.WithCancelCause(w.values)
	return h
}

// Remaining implements pacht.Keeper.
func (h *hold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.remaining()
}

func (h *hold) remaining() time.Duration { return h.left - h.from.Elapsed() }

// renewed takes in that the lease was extended by a call sent at the given time.
func (h *hold) renewed(sent clock.Instant, now, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.from, h.asked, h.left, h.until, h.retry = sent, sent, until.Sub(now), until, 0
	h.guarded = false // a row that could be extended is not locked: the transaction was rolled back
}

// seen takes in what the database's clock said in an answer to a call sent at the given time:
// if it ran ahead of ours, the lease ends earlier than we thought (R8).
func (h *hold) seen(sent clock.Instant, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := h.until.Sub(now); left-sent.Elapsed() < h.remaining() {
		h.from, h.left = sent, left
	}
}

// stop cancels the handler, once, and says why. It reports whether this call did it.
func (h *hold) stop(cause error) bool {
	h.mu.Lock()
	first := h.cause == nil
	if first {
		h.cause, h.stopped = cause, clock.Now()
	}
	h.mu.Unlock()
	if first {
		h.cancel(cause)
	}
	return first
}

// lose is stop because the lease is not ours any more, or no more for certain. A job that
// CompleteTx is closing is protected by its row lock, and goes on while that stands.
func (h *hold) lose(cause error) {
	h.mu.Lock()
	guarded, runs := h.guarded, h.started && !h.returned
	h.mu.Unlock()
	if guarded || !h.stop(cause) || !runs {
		return
	}
	h.w.log.Warn("lease lost, handler cancelled", append(h.attrs(), "cause", cause)...)
	h.w.tell(Event{Type: EventLost, Job: h.job, Took: h.claimed.Elapsed(), Err: cause})
}

// Ensure implements pacht.Keeper: always a round trip.
func (h *hold) Ensure(ctx context.Context, d time.Duration) error {
	for {
		h.mu.Lock()
		cause, closing := h.cause, h.closing
		h.mu.Unlock()
		switch {
		case cause != nil:
			return fmt.Errorf("ensure %s of %s: %w", d, h.job.Ref(), cause)
		case closing:
			return fmt.Errorf("ensure %s of %s: CompleteTx was called, no effect may follow it", d, h.job.Ref())
		}
		sent := clock.Now()
		// Bounded: a call that nobody answers would keep the renewals of all others waiting for
		// its connection.
		call, cancel := context.WithTimeout(ctx, renewTimeout(h.job.TTL))
		answer, err := h.w.store.Renew(call, []pacht.Ref{h.job.Ref()})
		cancel()
		if err != nil {
			return fmt.Errorf("ensure %s of %s: %w", d, h.job.Ref(), err)
		}
		failpoint.Here("worker.ensure.answered")
		switch row := answer.Rows[0]; row.State {
		case pacht.RenewExtended:
			h.renewed(sent, answer.Now, row.LeaseUntil)
			if left := h.Remaining(); left+margin(h.job.TTL) < d {
				return fmt.Errorf("ensure %s of %s: only %s left, the answer took too long", d, h.job.Ref(), left)
			}
			return nil
		case pacht.RenewLost:
			h.forfeit()
			h.lose(errLost)
			return fmt.Errorf("ensure %s of %s: %w", d, h.job.Ref(), errLost)
		}
		// Busy: neither extended nor lost; asked again until the lease's time is up.
		if h.Remaining() < margin(h.job.TTL) {
			return fmt.Errorf("ensure %s of %s: %w", d, h.job.Ref(), pacht.ErrBusy)
		}
		if err := clock.Sleep(ctx, min(h.job.TTL/50, 100*time.Millisecond)); err != nil {
			return err
		}
	}
}

// SetOutput implements pacht.Keeper.
func (h *hold) SetOutput(output json.RawMessage) error {
	if err := (pacht.Limits{}).ValidJSON("output", output); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.output = output
	return nil
}

// SetStep implements pacht.Keeper.
func (h *hold) SetStep(ctx context.Context, name string, data json.RawMessage) error {
	err := h.w.store.SetStep(ctx, h.job.Ref(), name, data)
	h.refused(err)
	return err
}

// SetStepTx implements pacht.Keeper.
func (h *hold) SetStepTx(ctx context.Context, tx pacht.Tx, name string, data json.RawMessage) error {
	err := tx.SetStepTx(ctx, h.job.Ref(), name, data)
	h.refused(err)
	return err
}

// Steps implements pacht.Keeper.
func (h *hold) Steps(ctx context.Context) ([]pacht.Step, error) {
	return h.w.store.Steps(ctx, h.job.ID)
}

// CompleteTx implements pacht.Keeper. It may be called again in a new transaction if the
// first was rolled back.
func (h *hold) CompleteTx(ctx context.Context, tx pacht.Tx) error {
	if tx == nil {
		return &pacht.InvalidError{Field: "transaction", Value: "nil", Bound: "store.Tx or store.SQLTx of an open transaction"}
	}
	err := h.recall(ctx)
	if err == nil {
		err = h.unanswered()
	}
	if err != nil {
		return h.refuseTx(ctx, tx, err)
	}
	h.mu.Lock()
	before := h.closing
	// Before the call: from the lock on, a renewal finds the row busy.
	h.tried, h.closing, h.guarded = true, true, true
	s := pacht.Settlement{Ref: h.job.Ref(), Outcome: pacht.OutcomeCompleted, Output: h.output}
	h.mu.Unlock()
	failpoint.Here("worker.tx.before")
	if err = tx.SettleTx(ctx, s); err == nil {
		failpoint.Here("worker.tx.completed")
	}
	h.mu.Lock()
	if err != nil {
		h.closing, h.guarded = before, false
	} else {
		h.guarded = true                                      // a renewal that came just before said otherwise
		h.asked, h.retry = clock.Now(), retryAfter(h.job.TTL) // soon: does the transaction still have it?
	}
	h.mu.Unlock()
	h.refused(err)
	return err
}

// refused cancels the handler if an answer says that the lease is gone.
func (h *hold) refused(err error) {
	if errors.Is(err, pacht.ErrLeaseLost) {
		h.lose(err)
	}
}

func (h *hold) attrs() []any {
	j := &h.job
	return []any{"job", j.ID, "kind", j.Kind, "queue", j.Queue, "token", j.Token, "attempt", j.Attempt, "owner", h.w.owner}
}
