package postgres

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
)

// doubts are the claims whose answer was lost. A store has a number of chance, and counts its claims.
// One without an answer may be on its way for as long as a network or a pooler keeps
// it: HeldBy makes it void in the database, so that what HeldBy tells is all that there will be
// (R4). A lease that came after the question would run out under nobody, and count as a crash. A
// claim of the same owner from another queue that was sent before and still comes in is void as
// well: it is answered, with no jobs, and the next one brings them.
type doubts struct {
	store int64 // never changes: another store for the same owner counts for itself

	mu   sync.Mutex
	last int64
	open map[string]int64 // by owner: the largest number
}

// numbered draws the store's number.
func (d *doubts) numbered() {
	var chance [8]byte
	_, _ = rand.Read(chance[:]) // never fails, by its documentation
	d.store = int64(binary.BigEndian.Uint64(chance[:]))
}

// next numbers a claim.
func (d *doubts) next() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
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
