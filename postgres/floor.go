package postgres

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// While some transaction keeps an old snapshot open, dead index entries and held rows at the
// head of a queue cannot be removed, and each claim walks over them. So a store remembers how
// far its claims have got, as the pair (run_at, job_id) per queue, kinds and priority, and
// starts there. It is a hint and no more: rows behind it, which committed late or were put
// back, are found by a look from the start, which is made after each claim that gave fewer
// rows than asked, and at least every second or 50 looks' time, whichever is longer.
//
// Of several processes each would walk over all that the others hold. So claims that go in turn
// leave word of how far they have got (table floors), and the next one goes on from there, whoever
// makes it, until the look on which that rests is as old.
const (
	lookEvery = time.Second
	lookShare = 50
)

// floors holds the floor of each queue and set of kinds.
type floors struct {
	mu     sync.Mutex
	by     map[floorKey]*floor
	resets int
}

type floorKey struct{ queue, kinds string }

// floor is what this store's claims have learned of a queue.
type floor struct {
	known  bool // how far they have got; else the next one looks from the start
	pairs  [pacht.MaxPriority]pair
	looked clock.Instant // when the last look from the start began
	took   time.Duration // how long that took
	resets int           // how often floors had been reset before it
	depth  depth
}

// depth is what the last claim that tells has told of a queue: one that got as many as it asked for,
// and asked for few, does not.
type depth int

const (
	unsaid depth = iota
	thin         // it came short and brought few: so will the next one
	deep         // it brought many
)

type pair struct {
	runAt int64 // microseconds since 1970; 0 = before all
	id    int64
}

// bottom is before every row.
var bottom = pair{0, math.MinInt64}

// start is where a claim starts, and on what that rests.
type start struct {
	key    floorKey
	from   [pacht.MaxPriority]pair
	full   bool // from the start of the queue
	depth  depth
	resets int   // what was seen before a reset may be behind what was put back
	alone  bool  // this store has put a job back since it looked last: it takes nobody's word
	lookAt int64 // when others gave it: the end of that, in microseconds since 1970
}

func (f *floors) start(req pacht.ClaimRequest) start {
	kinds := slices.Sorted(slices.Values(req.Kinds))
	at := start{key: floorKey{req.Queue, strings.Join(kinds, " ")}, full: true} // no name has a blank
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.by[at.key]
	if fl == nil {
		fl = &floor{}
		if f.by == nil {
			f.by = map[floorKey]*floor{}
		}
		f.by[at.key] = fl
	}
	at.depth, at.resets, at.alone = fl.depth, f.resets, fl.resets != f.resets
	if at.full = !fl.known || fl.looked.Elapsed() > max(lookEvery, lookShare*fl.took); at.full {
		at.from = fromBottom()
	} else {
		at.from = fl.pairs
	}
	return at
}

func fromBottom() (from [pacht.MaxPriority]pair) {
	for i := range from {
		from[i] = bottom
	}
	return from
}

// goOn takes in how far a claim of some store has got in a priority, and until when that holds.
func (a *start) goOn(priority int, at pair, lookAt int64) {
	if a.alone {
		return
	}
	a.full, a.lookAt = false, lookAt
	if p := &a.from[priority-1]; at.compare(*p) > 0 {
		*p = at
	}
}

// tells says whether others may go on from where this claim gets to.
func (a *start) tells() bool { return a.full || a.lookAt != 0 }

// kindsNumber stands for the kinds in the table, where a collision is as harmless as a wrong hint.
func (k floorKey) kindsNumber() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(k.kinds)) // never fails
	return int64(h.Sum64())
}

// brought takes in how many jobs a claim brought in all, of how many it asked for.
func (f *floors) brought(at start, jobs, limit int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch fl := f.by[at.key]; {
	case jobs >= gateFrom:
		fl.depth = deep
	case jobs < limit:
		fl.depth = thin
	}
}

// learn takes in what a claim gave, that began then, and was full or short of its limit.
func (f *floors) learn(at start, began clock.Instant, short bool, jobs []pacht.JobInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.by[at.key]
	if at.resets != f.resets {
		return
	}
	if at.full {
		fl.known, fl.pairs, fl.looked, fl.took, fl.resets = true, fromBottom(), began, began.Elapsed(), at.resets
	}
	if short {
		fl.known = false
	}
	for _, j := range jobs {
		if p, to := &fl.pairs[j.Priority-1], (pair{j.RunAt.UnixMicro(), int64(j.ID)}); to.compare(*p) > 0 {
			*p = to
		}
	}
}

func (p pair) compare(q pair) int {
	return cmp.Or(cmp.Compare(p.runAt, q.runAt), cmp.Compare(p.id, q.id))
}

// reset forgets all floors: this store has put a job back behind one of them.
func (f *floors) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets++
	for _, fl := range f.by {
		fl.known = false
	}
}

func floorArgs(from [pacht.MaxPriority]pair) []any {
	var args []any
	for _, p := range from {
		args = append(args, p.runAt, p.id)
	}
	return args
}
