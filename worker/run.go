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
	w.settler.put(h, w.settlement(h, err))
}

// settlement decides what a handler's answer means (R10). If the handler was stopped from
// outside and did not say itself what that means, a hold job's outcome is unknown, and a
// retry job failed: with the attempt given back unless its own timeout stopped it.
func (w *Worker) settlement(h *hold, err error) pacht.Settlement {
	h.mu.Lock()
	cause, output := h.cause, h.output
	h.mu.Unlock()
	policy := w.handlers[h.job.Kind].opts.Retry
	if policy == nil {
		policy = w.cfg.Retry
	}
	s := pacht.SettlementOf(h.job, err, policy, clock.Float())
	s.Output = output
	if err == nil || cause == nil || pacht.Classed(err) {
		return s
	}
	if why := cause.Error(); !strings.Contains(s.Error, why) {
		s.Error = why + ": " + s.Error
	}
	s.Error = pacht.SafeText("handler was stopped: "+s.Error, pacht.MaxErrorBytes)
	switch {
	case h.job.CrashPolicy == pacht.CrashHold:
		s.Outcome, s.Delay = pacht.OutcomeUnknown, 0
	case errors.Is(cause, pacht.ErrTimeout):
	case errors.Is(cause, pacht.ErrCancelRequested):
		s.Outcome, s.Delay = pacht.OutcomeCancelled, 0
	default:
		s.GiveBack, s.Delay = true, 0
	}
	return s
}
