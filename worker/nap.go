package worker

import (
	"context"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// A queue from which a claim came back with fewer jobs than asked is asked again after each of
// these; then only a notice, or the look that comes every Config.Poll, leads to a claim. They
// begin when the queue's row of sleepers is committed: an enqueue that looked for sleepers just
// before tells nobody. Without notices they begin after each claim that took something.
var fastPolls = []time.Duration{2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond}

// A queue is hot if so many claims of the last second took something, or if its slots were full
// for a second. It has no row then, so that no enqueue pays for a notice: transactions that
// notify commit one after the other.
const (
	hotClaims = 100
	hotFor    = time.Second
)

// A notice wakes all who sleep on a queue, and one of them gets the job. Who has lost so often in
// a row claims at every second notice, then at every fourth, at the rarest at every sixteenth;
// who won last claims at each. So a job costs a few claims, however many sleep (S044).
const (
	losses    = 8
	rarestLog = 4
)

// nap is how one queue's claim loop waits for its next claim.
type nap struct {
	k     *waker
	queue string
	stir  chan struct{} // has a token after something below has changed

	// Guarded by k.mu.
	step  int           // the next fast poll; len(k.polls) once they are over
	since clock.Instant // when the wait for it began
	idle  bool          // waits for a notice or a look, and for nothing else
	heard bool          // a notice has come since the last claim was sent
	due   bool          // a look found something, or listening has begun
	led   bool          // a notice led to the claim that is under way
	lost  int           // claims in a row that a notice led to and that took nothing

	wants   bool          // to have its row
	row     bool          // may have one
	down    bool          // has one, and notices arrive
	written clock.Instant // before the row was written the last time

	emptied clock.Instant // when a claim last came back with nothing
	filled  clock.Instant // when its slots were last seen to have been full for a second
	took    [hotClaims]clock.Instant
	taken   int // claims that took something, ever
}

// sent takes in that a claim is about to be sent: it will see all that was told of before.
func (n *nap) sent() {
	n.k.mu.Lock()
	defer n.k.mu.Unlock()
	n.led = n.heard
	n.heard, n.due, n.idle = false, false, false
}

// claimed takes in what a claim brought.
func (n *nap) claimed(taken int) {
	n.k.mu.Lock()
	defer n.k.mu.Unlock()
	now := clock.Now()
	if taken == 0 {
		if n.emptied = now; n.led {
			n.lost++
		}
		return
	}
	n.lost = 0
	n.took[n.taken%hotClaims] = now
	n.taken++
	if n.wants && n.hot(now) {
		n.getUp()
	}
	if !n.down {
		n.step = 0
	}
}

// hot says whether this queue is too busy to lie down.
func (n *nap) hot(now clock.Instant) bool {
	first := n.took[n.taken%hotClaims] // the earliest of the last hundred
	return n.taken >= hotClaims && now.Since(first) < hotFor || n.filled != (clock.Instant{}) && now.Since(n.filled) < hotFor
}

// takesPart says whether to claim at a notice.
func (n *nap) takesPart() bool {
	return clock.Float() < 1/float64(int(1)<<min(n.lost/losses, rarestLog))
}

// getUp gives the row up. The waker takes it away: no claim waits for that.
func (n *nap) getUp() {
	n.wants, n.down = false, false
	n.k.kick()
}

// full is called before the loop waits for a slot, and what it returns afterwards: who has had
// none for a second does not sleep.
func (n *nap) full(q *queue) (over func()) {
	if q.free() > 0 {
		return func() {}
	}
	began := clock.Now()
	t := time.AfterFunc(hotFor, func() {
		n.k.mu.Lock()
		defer n.k.mu.Unlock()
		if n.wants {
			n.getUp()
		}
	})
	return func() {
		t.Stop()
		now := clock.Now()
		if now.Since(began) < hotFor {
			return
		}
		n.k.mu.Lock()
		defer n.k.mu.Unlock()
		n.filled, n.step = now, 0
	}
}

// wait waits after a claim that brought fewer than asked, until it is time for another one. It
// returns false if ctx ended.
func (n *nap) wait(ctx context.Context) bool {
	n.k.mu.Lock()
	n.since = clock.Now()
	n.k.mu.Unlock()
	select {
	case n.k.quiet <- struct{}{}:
	default:
	}
	for {
		left, waits := n.left()
		if waits && left <= 0 {
			return ctx.Err() == nil
		}
		var due <-chan time.Time
		var timer *time.Timer
		if waits {
			timer = time.NewTimer(left)
			due = timer.C
		}
		select {
		case <-n.stir:
		case <-due:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// left says how long to wait for the next claim, if not for a notice or a look alone. When the
// time has come, the fast poll counts as made.
func (n *nap) left() (left time.Duration, waits bool) {
	k := n.k
	k.mu.Lock()
	defer k.mu.Unlock()
	now := clock.Now()
	over := n.step >= len(k.polls)
	if k.works && !n.wants && (over || !n.hot(now)) {
		n.wants = true
		k.kick()
	}
	// What a look has walked over for long is not walked over again and again by claims. A
	// queue that is never idle is not looked at: what was found there once is soon not true.
	rest := time.Duration(0)
	if n.emptied != (clock.Instant{}) && now.Since(k.looked) < 2*k.rest {
		rest = max(0, k.rest-now.Since(n.emptied))
	}
	n.idle = over
	switch {
	case n.due || n.heard && (n.down || over):
		return rest, true
	case over:
		return 0, false
	}
	if left = max(rest, k.polls[n.step]-now.Since(n.since)); left <= 0 {
		n.step++
	}
	return left, true
}

// poke makes the loop look at what has changed.
func (n *nap) poke() {
	select {
	case n.stir <- struct{}{}:
	default:
	}
}
