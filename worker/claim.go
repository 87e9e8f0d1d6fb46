package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// callTimeout bounds a single call to the store, so that a black hole cannot stop a loop.
const callTimeout = 10 * time.Second

// claimLoop fills one queue's slots until ctx ends. It never leases more than it has slots for,
// free or about to be, so that no lease waits in memory for a handler (S006).
func (w *Worker) claimLoop(ctx context.Context, q *queue) {
	unsure := false // a claim went unanswered: something may be held that we do not know of
	backoff := time.Duration(0)
	nap := w.wake.naps[q.name]
	for {
		over := nap.full(q)
		room := q.room(ctx)
		over()
		if room == 0 {
			break
		}
		if w.doubted.Load() || w.trouble.failing(callRenew) { // what we took now we could not keep (S012)
			if clock.Sleep(ctx, clock.Jitter(w.cfg.Poll)) != nil {
				break
			}
			continue
		}
		limit := min(room, pacht.MaxBatch)
		taken, err := 0, error(nil)
		if unsure {
			if err = w.adopt(ctx, q); err == nil {
				unsure = false
				continue
			}
		} else {
			nap.sent()
			taken, err = w.claim(ctx, q, limit, func() int {
				if room := q.free(); room > 0 {
					limit = min(room, pacht.MaxBatch)
				}
				return limit
			})
			unsure = err != nil && !errors.Is(err, pacht.ErrBusy) // that is an answer: nothing was taken
		}
		if err != nil {
			w.trouble.met(callClaim, err)
			backoff = min(max(2*backoff, 50*time.Millisecond), 5*time.Second)
			if clock.Sleep(ctx, clock.Jitter(backoff)) != nil {
				break
			}
			continue
		}
		backoff = 0
		nap.claimed(taken)
		if taken < limit && !nap.wait(ctx) {
			break
		}
	}
	for _, h := range q.close() {
		w.release(h)
	}
	if unsure {
		if err := w.adopt(ctx, q); err != nil {
			w.log.Warn("a claim went unanswered and the database cannot be asked; what it took, if anything, is left to expire",
				"queue", q.name, "owner", w.owner, "error", err)
		}
	}
}

// claim takes up to n due jobs, or as many as room says after a wait, and starts their handlers. The
// call itself is not cancelled by ctx: an answer that is on its way tells what we hold. What comes
// after ctx has ended is released, not run (S087).
func (w *Worker) claim(ctx context.Context, q *queue, n int, room func() int) (int, error) {
	call, cancel := context.WithTimeout(w.base, callTimeout)
	defer cancel()
	failpoint.Here("worker.claim.before")
	sent := clock.Now()
	req := pacht.ClaimRequest{Owner: w.owner, Queue: q.name, Kinds: w.kinds, Limit: n}
	if room != nil {
		req.Room = func() int {
			sent = clock.Now() // the leases do not run yet
			return room()
		}
	}
	claims, err := w.store.Claim(call, req)
	if err != nil {
		return 0, err
	}
	if len(claims.Jobs) > 0 {
		failpoint.Here("worker.claimed")
	}
	w.trouble.over(callClaim)
	w.beginAll(q, claims, sent, false)
	return len(claims.Jobs), nil
}

// adopt asks what this owner holds, after a claim whose answer was lost, and takes in what
// it does not know of (R4). Only this loop claims from this queue, so a lease of the queue
// that is unknown cannot be one that is being taken in right now.
func (w *Worker) adopt(ctx context.Context, q *queue) error {
	call, cancel := context.WithTimeout(w.base, callTimeout)
	defer cancel()
	// Known is what was known when the question went out: by the time the answer comes, some of
	// it is settled and forgotten, and must not run again.
	known := w.holds.refs()
	failpoint.Here("worker.adopt.before")
	sent := clock.Now()
	held, err := w.store.HeldBy(call, w.owner)
	if err != nil {
		return err
	}
	failpoint.Here("worker.adopt.answered")
	w.trouble.over(callClaim)
	held.Jobs = slices.DeleteFunc(held.Jobs, func(job pacht.JobInfo) bool { return job.Queue != q.name || known[job.Ref()] })
	for _, job := range held.Jobs {
		w.log.Info("adopted a lease whose claim went unanswered", "job", job.ID, "kind", job.Kind, "queue", q.name,
			"token", job.Token, "attempt", job.Attempt, "owner", w.owner)
	}
	w.beginAll(q, held, sent, true)
	return nil
}

// beginAll takes in what a call answered that was sent at the given time.
func (w *Worker) beginAll(q *queue, claims pacht.Claims, sent clock.Instant, adopted bool) {
	now := clock.Now()
	for _, job := range claims.Jobs {
		w.begin(newHold(w, q, job, sent, claims.Now), now, adopted)
	}
}

// begin starts the handler of a job that was leased, or has it wait for a slot that a settle is
// about to free. It releases what may not start any more, and of an adoption what there is no room
// for: a claim asks for no more than that.
func (w *Worker) begin(h *hold, now clock.Instant, adopted bool) {
	w.holds.add(h) // from here on the renewals know of it
	if !w.fit(h, now) {
		w.release(h)
		return
	}
	w.tell(Event{Type: EventClaimed, Job: h.job})
	switch h.q.take(h, adopted) {
	case placeSlot:
		w.launch(h)
	case placeNone:
		w.release(h)
	}
}

// next starts the handlers that have waited for a slot. Each lease is looked at again.
func (w *Worker) next(waited []*hold) {
	now := clock.Now()
	for _, h := range waited {
		if w.fit(h, now) {
			w.launch(h)
		} else {
			h.slot = 1
			w.release(h)
		}
	}
}

// fit says whether a handler may start: not when the worker is stopping (S087), when too little
// is left of the lease, or when there is a reason to stop it already.
func (w *Worker) fit(h *hold, now clock.Instant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.taking.Err() == nil && h.cause == nil && h.left-now.Since(h.from) > margin(h.job.TTL)
}

func (w *Worker) launch(h *hold) {
	h.mu.Lock()
	h.slot, h.started = 1, true
	h.mu.Unlock()
	failpoint.Here("worker.begun")
	w.runners.run(h)
}

// release gives a lease back whose handler has not started.
func (w *Worker) release(h *hold) {
	h.mu.Lock()
	h.returned = true
	h.mu.Unlock()
	h.cancel(context.Canceled) // or the base context would remember it to its end
	w.settler.put(h, pacht.Settlement{Ref: h.job.Ref(), Outcome: pacht.OutcomeReleased})
}
