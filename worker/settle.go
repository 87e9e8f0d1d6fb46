package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// settler stores outcomes by group commit: a batch goes out at once when none is in flight,
// and takes along all that has gathered meanwhile. No timer makes a result wait. An outcome
// is offered until the database has answered or the worker stops, also after the lease's
// end (R7); its slot is free only then.
type settler struct {
	w    *Worker
	mu   sync.Mutex
	wait []outcome
	room []outcome     // empty: where others wait once these are taken
	work chan struct{} // has a token while something waits
}

// outcome is what is to be stored for a hold. If asked is set, CompleteTx was called: the
// ledger is read first, and s is what to say if the lease is still open.
type outcome struct {
	h     *hold
	s     pacht.Settlement
	asked bool
	tries int // how often its row was busy
}

func newSettler(w *Worker) *settler { return &settler{w: w, work: make(chan struct{}, 1)} }

// put hands over an outcome.
func (s *settler) put(h *hold, settlement pacht.Settlement) {
	s.add(outcome{h: h, s: settlement})
}

// ask hands over a job whose handler called CompleteTx. Whether that was committed, only the
// ledger knows; the worker never settles such a job as completed by itself. The settler of such
// jobs is one of their own, so that no other outcome waits for the ledger (R12).
func (s *settler) ask(h *hold, err error) {
	if err == nil {
		err = pacht.ErrNotCommitted
	}
	s.w.asker.add(outcome{h: h, s: s.w.settlement(h, err), asked: true})
}

func (s *settler) add(more ...outcome) {
	s.mu.Lock()
	s.wait = append(s.wait, more...)
	s.mu.Unlock()
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// later offers an outcome again whose row somebody else holds locked, by itself, so that it
// delays no other (R12).
func (s *settler) later(o outcome) {
	o.tries++
	wait := min(10*time.Millisecond<<min(o.tries, 7), time.Second)
	time.AfterFunc(clock.Jitter(wait), func() { s.add(o) })
}

// take answers what waits. Whoever has stored it says so by took.
func (s *settler) take() (batch []outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wait) <= pacht.MaxBatch {
		batch, s.wait, s.room = s.wait, s.room, nil
		return batch
	}
	batch = slices.Clone(s.wait[:pacht.MaxBatch])
	s.wait = slices.Delete(s.wait, 0, pacht.MaxBatch)
	select {
	case s.work <- struct{}{}:
	default:
	}
	return batch
}

// took gives the room of a batch back, so that none has to be made for each.
func (s *settler) took(batch []outcome) {
	clear(batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room = batch[:0]
}

func (s *settler) run() {
	failed := time.Duration(0)
	for {
		select {
		case <-s.w.base.Done():
			return
		case <-s.work:
		}
		batch := s.take()
		again := s.store(batch)
		s.took(batch)
		if len(again) == 0 {
			failed = 0
			continue
		}
		failed = min(max(2*failed, 20*time.Millisecond), 2*time.Second)
		if clock.Sleep(s.w.base, clock.Jitter(failed)) != nil {
			s.add(again...) // stay held, and are named as unfinished
			return
		}
		s.add(again...)
	}
}

// store offers a batch once and returns what must be offered again.
func (s *settler) store(batch []outcome) (again []outcome) {
	look, cancelLook := context.WithTimeout(s.w.base, callTimeout)
	defer cancelLook()
	leaving, left := make(map[*queue]int), make(map[*queue]int)
	for _, o := range batch {
		leaving[o.h.q] += o.h.slot
	}
	for q, n := range leaving {
		leaving[q] = q.leave(n)
	}
	defer func() {
		for q, n := range leaving {
			s.w.next(q.give(left[q], n))
		}
	}()
	settle := batch[:0] // written behind what is read
	for _, o := range batch {
		if !o.asked {
			settle = append(settle, o)
			continue
		}
		closed, err := s.closed(look, o.h)
		switch {
		case err != nil:
			s.w.trouble.met(callSettle, err)
			again = append(again, o)
		case closed != nil:
			left[o.h.q] += o.h.slot
			s.done(o, *closed, clock.Now())
		default:
			settle = append(settle, o)
		}
	}
	if len(settle) == 0 {
		return again
	}
	settlements := make([]pacht.Settlement, len(settle))
	for i, o := range settle {
		settlements[i] = o.s
	}
	failpoint.Here("worker.settle.before")
	call, cancel := context.WithTimeout(s.w.base, callTimeout) // of its own: looks may have spent theirs
	defer cancel()
	answers, err := s.w.store.Settle(call, settlements)
	if err != nil {
		if s.w.base.Err() == nil {
			s.w.trouble.met(callSettle, err)
		}
		return append(again, settle...)
	}
	failpoint.Here("worker.settle.answered")
	s.w.trouble.over(callSettle)
	now := clock.Now()
	for i, a := range answers {
		if errors.Is(a.Err, pacht.ErrBusy) {
			s.later(settle[i])
			continue
		}
		left[settle[i].h.q] += settle[i].h.slot
		s.done(settle[i], committed(settle[i], a), now)
	}
	return again
}

// committed takes a refusal for what it is if the commit of CompleteTx came between the look
// at the ledger and the settle: nobody else completes under this token.
func committed(o outcome, a pacht.Settled) pacht.Settled {
	var lost *pacht.LeaseLostError
	if o.asked && errors.As(a.Err, &lost) && lost.Outcome == pacht.OutcomeCompleted {
		return pacht.Settled{Ref: a.Ref, Status: pacht.Completed}
	}
	return a
}

// closed reads from the ledger whether the hold's lease was closed, and how.
func (s *settler) closed(ctx context.Context, h *hold) (*pacht.Settled, error) {
	attempts, err := s.w.store.Attempts(ctx, h.job.ID)
	if err != nil {
		return nil, fmt.Errorf("read the ledger of %s: %w", h.job.Ref(), err)
	}
	failpoint.Here("worker.ledger.answered")
	for _, a := range attempts {
		if a.Token == h.job.Token {
			settled := &pacht.Settled{Ref: h.job.Ref(), Status: a.NextStatus, Late: a.Late}
			if a.Outcome != pacht.OutcomeCompleted {
				settled.Err = &pacht.LeaseLostError{Ref: h.job.Ref(), Status: a.NextStatus, Owner: a.Owner, Outcome: a.Outcome}
			}
			return settled, nil
		}
	}
	return nil, nil
}

// done takes in the database's answer, which came at the given time: the lease is not held any
// more, one way or the other. The caller frees its slot.
func (s *settler) done(o outcome, a pacht.Settled, now clock.Instant) {
	h, w := o.h, s.w
	w.holds.remove(h)
	took := now.Since(h.claimed)
	outcome := o.s.Outcome
	if o.asked && a.Err == nil {
		outcome = pacht.OutcomeCompleted
	}
	if a.Err != nil {
		// No success event, no metric, no follow-up (R3); the store has kept the report.
		w.log.Warn("outcome refused", append(h.attrs(), "outcome", outcome, "error", a.Err)...)
		w.tell(Event{Type: EventRefused, Job: h.job, Outcome: outcome, Took: took, Err: a.Err})
		return
	}
	if o.s.Error != "" && outcome == o.s.Outcome {
		w.log.Warn("job not completed", append(h.attrs(), "outcome", outcome, "status", a.Status, "took", took, "error", o.s.Error)...)
	} else if w.log.Enabled(w.base, slog.LevelDebug) {
		w.log.Debug("job settled", append(h.attrs(), "outcome", outcome, "status", a.Status, "took", took)...)
	}
	w.tell(Event{Type: EventSettled, Job: h.job, Outcome: outcome, Status: a.Status, Late: a.Late, Took: took})
}
