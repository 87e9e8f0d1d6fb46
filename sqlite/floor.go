package sqlite

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Rows that a claimer may not take (held by others, of kinds it does not know) can stand at the
// head of a queue by the hundred thousand, and getting past them takes long. So a store
// remembers how far its looks have got, as the pair (run_at, job_id) per queue, kinds and
// priority, and starts there. It is a hint and no more: rows behind it, which were committed
// late or put back by another process, are found by a look from the start, which is made at
// least every second or 50 looks' time, whichever is longer. So looks from the start take at
// most two per cent of the time, also of a worker with nothing to do.
const (
	lookEvery = time.Second
	lookShare = 50
	// A look from the start that is quicker than this needs no hint: then claims keep to the
	// order of the queue exactly.
	lookIsSlow = 5 * time.Millisecond
	// A look that found nothing leaves its hint this far back, because a job that is enqueued in
	// a transaction of the caller's is due before it is committed.
	lateCommit = 2 * time.Second
	// mostFloors bounds the memory: whoever claims ever new sets of kinds does without hints.
	mostFloors = 1000
)

// floors holds the floor of each queue and set of kinds.
type floors struct {
	mu     sync.Mutex
	by     map[floorKey]*floor
	resets uint64
}

type floorKey struct{ queue, kinds string }

// floor is where looks may start.
type floor struct {
	from   [pacht.MaxPriority]place
	looked clock.Instant // when the last look from the start began
	took   time.Duration // how long that took
}

// place is a row's place within its queue and priority.
type place struct{ runAt, id int64 }

// bottom is before every row.
var bottom = place{math.MinInt64, math.MinInt64}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.runAt, q.runAt), cmp.Compare(p.id, q.id))
}

// look is one look for rows to claim.
type look struct {
	key    floorKey
	from   [pacht.MaxPriority]place
	full   bool // from the start of the queue
	began  clock.Instant
	resets uint64
}

// start says where a look for these jobs is to start.
func (f *floors) start(req pacht.ClaimRequest) look {
	kinds := slices.Sorted(slices.Values(req.Kinds))
	l := look{key: floorKey{req.Queue, strings.Join(kinds, " ")}, began: clock.Now()} // no name has a blank
	f.mu.Lock()
	defer f.mu.Unlock()
	l.resets = f.resets
	fl := f.by[l.key]
	if fl == nil {
		if f.by == nil || len(f.by) >= mostFloors {
			f.by = map[floorKey]*floor{}
		}
		fl = &floor{from: fromBottom()}
		f.by[l.key] = fl
		l.full = true
	} else {
		l.full = fl.took < lookIsSlow || fl.looked.Elapsed() > max(lookEvery, lookShare*fl.took)
	}
	if l.full {
		l.from, fl.looked = fromBottom(), l.began // while this one is at it, others do not look too
		return l
	}
	l.from = fl.from
	return l
}

func fromBottom() (from [pacht.MaxPriority]place) {
	for i := range from {
		from[i] = bottom
	}
	return from
}

// learn takes in where the first rows to take were; nil: there were none that are due now.
func (f *floors) learn(l look, now int64, found [pacht.MaxPriority]*place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.by[l.key]
	if fl == nil || f.resets != l.resets {
		return // a job was put back in between
	}
	if l.full {
		fl.from, fl.took = fromBottom(), l.began.Elapsed()
	}
	for i, at := range found {
		if at == nil {
			at = &place{now - lateCommit.Milliseconds(), math.MinInt64}
		}
		fl.raise(i, *at)
	}
}

// taken takes in how far a claim has got in one priority.
func (f *floors) taken(l look, priority int, last place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.by[l.key]; fl != nil && f.resets == l.resets {
		fl.raise(priority-1, last)
	}
}

func (fl *floor) raise(i int, to place) {
	if to.compare(fl.from[i]) > 0 {
		fl.from[i] = to
	}
}

// reset forgets all floors: this store has put a job back behind one of them.
func (f *floors) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by = nil
	f.resets++
}
