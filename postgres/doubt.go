package postgres

import (
	"sync"

	"github.com/pacht-queue/pacht/internal/clock"
)

// doubts are the claims whose answer was lost. Each claim has a number that is larger than those of
// the claims before it. Such a claim may be on its way for as long as a network or a pooler keeps
// it: HeldBy makes it void in the database, so that what HeldBy tells is all that there will be
// (R4). A lease that came after the question would run out under nobody, and count as a crash. A
// claim of the same owner from another queue that was sent before and still comes in is void as
// well: it is answered, with no jobs, and the next one brings them.
type doubts struct {
	mu   sync.Mutex
	last int64
	open map[string]int64 // by owner: the largest number
}

// next numbers a claim. By the clock, so that a store which is opened later for the same owner does
// not begin below what is void; if that goes back, one by one.
func (d *doubts) next() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = max(d.last+1, clock.Now().Time().UnixMicro())
	return d.last
}

// add takes in that a claim went unanswered.
func (d *doubts) add(owner string, number int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]int64{}
	}
	d.open[owner] = max(d.open[owner], number)
}

// of is the largest number of an owner's claims in doubt, 0 if there are none.
func (d *doubts) of(owner string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[owner]
}

// settled takes in that all up to this one are void.
func (d *doubts) settled(owner string, number int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[owner] <= number {
		delete(d.open, owner)
	}
}
