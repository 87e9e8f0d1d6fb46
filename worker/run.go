package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// errLost is the cause when a renewal was refused: expired, closed, or taken.
var errLost = fmt.Errorf("a renewal was refused: %w", pacht.ErrLeaseLost)

var errGoexit = errors.New("handler ended its goroutine with runtime.Goexit")

// work runs one handler to its end. However it ends, an outcome is handed to the settler,
// and the slot is free when that is answered.
func (w *Worker) work(h *hold) {
	var err error
	// Deferred, because runtime.Goexit cannot be stopped: only deferred calls still run.
	defer func() { w.conclude(h, err) }()
	err = errGoexit
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("handler panicked: %v\n%s", r, debug.Stack())
		}
	}()
	handler := w.handlers[h.job.Kind]
	if timeout := w.timeout(handler); timeout > 0 {
		t := time.AfterFunc(timeout, func() {
			h.stop(fmt.Errorf("%w: it ran longer than %s", pacht.ErrTimeout, timeout))
		})
		defer t.Stop()
	}
	// The label finds a wedged handler's stack.
	ctx := pprof.WithLabels(h.ctx, pprof.Labels(stackLabel, h.job.Ref().String()))
	pprof.SetGoroutineLabels(ctx)
	failpoint.Here("worker.handle")
	err = handler.fn(ctx, pacht.NewHeld(h.job, h))
}

func (w *Worker) timeout(h Handler) time.Duration {
	if h.opts.Timeout != nil {
		return *h.opts.Timeout
	}
	return w.cfg.Timeout
}

// conclude turns what the handler answered into a settlement, and hands it over.
func (w *Worker) conclude(h *hold, err error) {
	failpoint.Here("worker.returned")
	h.mu.Lock()
	h.returned = true
	tried, wedged := h.tried, h.wedged
	h.wedged = false
	h.mu.Unlock()
	if wedged {
		w.log.Warn("a handler that ignored its cancelled context has returned after all", h.attrs()...)
		w.tell(Event{Type: EventUnwedged, Job: h.job})
	}
	h.cancel(context.Canceled) // what the handler left behind should end
	if tried {
		w.settler.ask(h, err)
		return
	}
	if err == nil {
		h.remember()
	}
	w.settler.put(h, w.settlement(h, err))
}

// settlement decides what a handler's answer means (R10). While an effect is without an answer
// the outcome is unknown, unless the handler said itself what its error means: never completed,
// never retried blindly. If a handler was stopped from outside, a hold job of which no effect is
// known is unknown too; else it failed, with the attempt given back unless its own timeout
// stopped it.
func (w *Worker) settlement(h *hold, err error) pacht.Settlement {
	h.mu.Lock()
	cause, output := h.cause, h.output
	h.mu.Unlock()
	open := h.unanswered()
	policy := w.handlers[h.job.Kind].opts.Retry
	if policy == nil {
		policy = w.cfg.Retry
	}
	s := pacht.SettlementOf(h.job, err, policy, clock.Float())
	s.Output = output
	if pacht.Classed(err) || open == nil && (err == nil || cause == nil) {
		return s
	}
	if err == nil {
		s.Error = "handler returned nil"
		if open != nil { // it swallowed what the effect told it, and the worker was not told
			s.Error += "; the effect's own error: pacht jobs show " + h.job.ID.String()
		}
	} else if cause != nil {
		if why := cause.Error(); !strings.Contains(s.Error, why) {
			s.Error = why + ": " + s.Error
		}
		s.Error = "handler was stopped: " + s.Error
	}
	if open != nil {
		s.Error = open.Error() + ": " + s.Error
	}
	s.Error = pacht.SafeText(s.Error, pacht.MaxErrorBytes)
	switch {
	case open != nil, h.job.CrashPolicy == pacht.CrashHold && !h.hasEffects():
		s.Outcome, s.Delay = pacht.OutcomeUnknown, 0
	case errors.Is(cause, pacht.ErrTimeout):
	case errors.Is(cause, pacht.ErrCancelRequested):
		s.Outcome, s.Delay = pacht.OutcomeCancelled, 0
	default:
		s.GiveBack, s.Delay = true, 0
	}
	return s
}
