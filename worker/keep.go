package worker

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

const stackLabel = "pacht_lease"

// deposeLoop stops holders whose lease is about to end, whatever the database does (R8). It
// never talks to the database, so that nothing can hold it up. It also finds handlers that
// ignore their cancelled context.
func (w *Worker) deposeLoop() {
	said := false
	for next := w.holds.ticker(w.base); next(); {
		wedged := 0
		for _, h := range w.holds.list() {
			h.mu.Lock()
			left := h.remaining()
			stopped := h.cause != nil && h.started && !h.returned
			overdue := stopped && !h.wedged && h.stopped.Elapsed() > w.cfg.TimeoutGrace
			if overdue {
				h.wedged = true
			}
			if h.wedged {
				wedged++
			}
			h.mu.Unlock()
			if left <= margin(h.job.TTL) {
				h.lose(fmt.Errorf("the lease could not be renewed in time, %s before its end: %w", max(left, 0).Round(time.Millisecond), pacht.ErrLeaseLost))
			}
			if overdue {
				stack := stackOf(h.job.Ref())
				w.log.Error("handler ignores its cancelled context: its slot is blocked and its job is not renewed any more",
					append(h.attrs(), "cause", context.Cause(h.ctx), "stack", stack)...)
				w.tell(Event{Type: EventWedged, Job: h.job, Err: fmt.Errorf("%w\n%s", context.Cause(h.ctx), stack)})
			}
		}
		if slots := w.slots(); w.cfg.StopWhenWedged && wedged >= slots && !said {
			said = true
			w.log.Error("every slot is blocked by a handler that ignores its context; stopping", "slots", slots, "owner", w.owner)
			w.giveUp()
		}
	}
}

// renewLoop extends leases after a third of their TTL, in one batch per look and class. A renewal
// that fails is tried again within the time that is left, not after another third.
func (w *Worker) renewLoop() {
	for next := w.holds.ticker(w.base); next(); {
		held := w.holds.list()
		classes := classesOf(held)
		shortest := callTimeout
		for _, h := range held {
			shortest = min(shortest, renewTimeout(h.job.TTL))
		}
		for _, c := range classes {
			refs := make([]pacht.Ref, 0, len(c))
			due := make(map[pacht.Ref]*hold, len(c))
			for _, h := range c[:min(len(c), pacht.MaxBatch)] {
				refs, due[h.job.Ref()] = append(refs, h.job.Ref()), h
			}
			// While shorter ones are held a call gives up early: theirs comes after it.
			w.renew(refs, due, min(renewTimeout(c[0].job.TTL), max(2*shortest, time.Second)))
		}
		if len(classes) == 0 && w.trouble.failing(callRenew) {
			w.renew([]pacht.Ref{{}}, nil, callTimeout) // no job has it: asked only whether renewals work again
		}
		if w.trouble.failing(callShort) && !slices.ContainsFunc(held, (*hold).failing) {
			w.trouble.over(callShort)
		}
	}
}

// classesOf sorts what is due into calls, the shortest leases first. One call has one bound, and all
// of its leases fail together: so nobody shares it whose own bound is twice as long (R12).
func classesOf(held []*hold) (classes [][]*hold) {
	due := slices.DeleteFunc(slices.Clone(held), func(h *hold) bool { return !h.renewalDue() })
	slices.SortFunc(due, func(a, b *hold) int { return cmp.Compare(a.job.TTL, b.job.TTL) })
	for len(due) > 0 {
		bound := 2 * renewTimeout(due[0].job.TTL)
		n := 1
		for n < len(due) && renewTimeout(due[n].job.TTL) < bound {
			n++
		}
		classes = append(classes, due[:n])
		due = due[n:]
	}
	return classes
}

// failing says that the last renewal failed.
func (h *hold) failing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.retry > 0 && !h.guarded
}

// renewalsFail takes in that a call with this bound has failed. If one that may take longer is
// answered, this connection is too slow for short leases, and for nothing else that could be claimed;
// until it is, nothing is (S012).
func (w *Worker) renewalsFail(timeout time.Duration, err error) {
	longest := timeout
	for _, h := range w.holds.list() {
		longest = max(longest, min(renewTimeout(h.job.TTL), 2*time.Second))
	}
	if longest >= 2*timeout && !w.trouble.failing(callRenew) {
		w.doubted.Store(!w.trouble.failing(callShort)) // else it is known, and only looked at again
		defer w.doubted.Store(false)
		call, cancel := context.WithTimeout(w.base, longest)
		defer cancel()
		if _, none := w.store.Renew(call, []pacht.Ref{{}}); none == nil { // no job has it
			w.trouble.met(callShort, err)
			return
		}
	}
	w.trouble.met(callRenew, err)
}

// renewTimeout bounds one call that renews a lease of this TTL.
func renewTimeout(ttl time.Duration) time.Duration {
	return min(max(ttl/3, 50*time.Millisecond), callTimeout)
}

// renewalDue says whether it is time to renew. Not any more once the handler was stopped and
// has not returned in its grace time; but until the outcome of a handler that has returned is
// stored (S022). Also after CompleteTx: its transaction may have been rolled back.
func (h *hold) renewalDue() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.wedged || h.forfeited || h.remaining() <= 0 && !h.guarded:
		return false
	case h.retry > 0:
		return h.asked.Elapsed() >= h.retry
	}
	// A tick early, so that a look just before the third does not cost another tick.
	return h.asked.Elapsed() >= h.job.TTL/3-tickOf(h.job.TTL)
}

func (w *Worker) renew(refs []pacht.Ref, due map[pacht.Ref]*hold, timeout time.Duration) {
	call, cancel := context.WithTimeout(w.base, timeout)
	defer cancel()
	if len(due) > 0 {
		failpoint.Here("worker.renew.before")
	}
	sent := clock.Now()
	answer, err := w.store.Renew(call, refs)
	if err != nil {
		if w.base.Err() == nil {
			w.renewalsFail(timeout, err)
		}
		for _, h := range due {
			h.retryRenewal(sent)
		}
		return
	}
	if len(due) > 0 {
		failpoint.Here("worker.renew.answered")
	}
	w.trouble.over(callRenew)
	for _, row := range answer.Rows {
		h := due[row.Ref]
		if h == nil {
			continue
		}
		switch row.State {
		case pacht.RenewExtended:
			h.renewed(sent, answer.Now, row.LeaseUntil)
		case pacht.RenewBusy:
			h.retryRenewal(sent)
			h.guard()
		case pacht.RenewLost:
			h.forfeit()
			w.examine(call, h)
			h.lose(errLost)
		}
		if row.CancelRequested && h.stop(pacht.ErrCancelRequested) {
			w.log.Info("cancel requested, handler cancelled", h.attrs()...)
		}
	}
	for _, h := range w.holds.list() {
		h.seen(sent, answer.Now)
	}
}

// examine asks the ledger why a lease that CompleteTx closed in some transaction is gone: if
// that was committed the handler may go on, else somebody else has closed or taken it.
func (w *Worker) examine(ctx context.Context, h *hold) {
	h.mu.Lock()
	asks := h.closing && !h.returned
	h.mu.Unlock()
	if !asks {
		return
	}
	closed, err := w.settler.closed(ctx, h)
	if err != nil {
		w.trouble.met(callRenew, err)
	}
	h.mu.Lock()
	h.guarded = closed != nil && closed.Err == nil
	h.mu.Unlock()
}

// guard takes in that the row is locked: if CompleteTx has locked it, that protects the job.
func (h *hold) guard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.guarded = h.closing
}

// forfeit takes in that the lease is not ours any more: nothing of it remains to be renewed.
func (h *hold) forfeit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.forfeited = 0, true
}

func (h *hold) retryRenewal(sent clock.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked, h.retry = sent, retryAfter(h.job.TTL)
}

// retryAfter is how soon a renewal that failed, or found the row busy, is tried again.
func retryAfter(ttl time.Duration) time.Duration { return clock.Jitter(min(ttl/15, time.Second)) }

// stackOf finds the goroutines that carry the lease's label, the handler and what it started.
func stackOf(ref pacht.Ref) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return "no stack: " + err.Error()
	}
	label := fmt.Sprintf("%q:%q", stackLabel, ref.String())
	var found []string
	for _, block := range strings.Split(all.String(), "\n\n") {
		if strings.Contains(block, label) {
			found = append(found, block)
		}
	}
	return pacht.SafeText(strings.Join(found, "\n\n"), pacht.MaxErrorBytes)
}
