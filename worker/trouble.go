package worker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// trouble is what the loops know of the database's health: each kind of call by itself, since
// renewals may fail while claims go through (S012). Each failed call is counted; the log gets
// the first of a row and one every half minute (S042).
type trouble struct {
	w     *Worker
	mu    sync.Mutex
	count int64
	rows  map[call]*row
	// closed is not nil once the store was found closed.
	closed error
}

// call is a kind of call to the store.
type call string

const (
	callSchema call = "schema"
	callClaim  call = "claim"
	callRenew  call = "renew"
	callShort  call = "renew short leases" // while longer ones are renewed
	callSettle call = "settle"
	callBeat   call = "beat"
	callWatch  call = "watch"
	callSweep  call = "sweep"
	callListen call = "listen"
	callLook   call = "look"
	callSleep  call = "sleep"
)

// row is a row of failures of one kind of call.
type row struct {
	err           error
	since, logged clock.Instant
	count         int
}

func newTrouble(w *Worker) *trouble { return &trouble{w: w, rows: map[call]*row{}} }

// met counts a failed call.
func (t *trouble) met(c call, err error) {
	t.mu.Lock()
	t.count++
	degraded := len(t.rows) == 0
	r := t.rows[c]
	say := r == nil
	if r == nil {
		now := clock.Now()
		r = &row{since: now, logged: now}
		t.rows[c] = r
	} else if r.logged.Elapsed() > 30*time.Second {
		say = true
		r.logged = clock.Now()
	}
	r.err = err
	r.count++
	closed := errors.Is(err, pacht.ErrClosed)
	if closed {
		t.closed = fmt.Errorf("worker stopped: %s: %w", c, err)
	}
	told := *r
	t.mu.Unlock()
	if say {
		t.w.log.Error("the database does not answer as it should; trying on", "call", c, "owner", t.w.owner,
			"error", err, "failures", told.count, "for", told.since.Elapsed().Round(time.Millisecond))
	}
	if degraded {
		t.w.tell(Event{Type: EventDegraded, Err: err})
	}
	if closed {
		t.w.giveUp() // no waiting brings it back
	}
}

// over takes in that a call was answered.
func (t *trouble) over(c call) {
	t.mu.Lock()
	r := t.rows[c]
	delete(t.rows, c)
	restored := r != nil && len(t.rows) == 0
	t.mu.Unlock()
	if r != nil {
		t.w.log.Info("the database answers again", "call", c, "owner", t.w.owner,
			"failures", r.count, "for", r.since.Elapsed().Round(time.Millisecond))
	}
	if restored {
		t.w.tell(Event{Type: EventRestored})
	}
}

// failing says whether the last call of this kind failed.
func (t *trouble) failing(c call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[c] != nil
}

// fatal is why the worker had to stop, if its store was closed under it.
func (t *trouble) fatal() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// state is how many calls ever failed, and the error of some kind of call that fails now.
func (t *trouble) state() (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows {
		return t.count, r.err
	}
	return t.count, nil
}
