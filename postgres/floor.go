package postgres

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

// While some transaction keeps an old snapshot open, dead index entries and held rows at the
// head of a queue cannot be removed, and each claim walks over them. So a store remembers how
// far its claims have got, as the pair (run_at, job_id) per queue, kinds and priority, and
// starts there. It is a hint and no more: rows behind it, which committed late or were put
// back, are found by a look from the start, which is made after each claim that gave fewer
// rows than asked, and at least every second or 50 looks' time, whichever is longer.
const (
	lookEvery = time.Second
	lookShare = 50
)

// floors holds the floor of each queue and set of kinds.
type floors struct {
	mu     sync.Mutex
	by     map[floorKey]*floor
	resets int
	// thin are those, of any resets, whose last claim came short and brought few jobs: the next one is
	// likely to.
	thin map[floorKey]bool
}

// floorKey is whose floor it is, and how often floors had been reset when that was asked: what
// was seen before a reset may be behind what was put back.
type floorKey struct {
	queue, kinds string
	resets       int
}

// floor is where claims may start.
type floor struct {
	pairs  [pacht.MaxPriority]pair
	looked clock.Instant // when the last look from the start began
	took   time.Duration // how long that took; 0 = never looked
}

type pair struct {
	runAt int64 // microseconds since 1970; 0 = before all
	id    int64
}

// bottom is before every row.
var bottom = pair{0, math.MinInt64}

// start answers where to start a claim, whether that is the start of the queue, and whether the
// claim is likely to bring few jobs.
func (f *floors) start(req pacht.ClaimRequest) (key floorKey, from [pacht.MaxPriority]pair, full, thin bool) {
	kinds := slices.Sorted(slices.Values(req.Kinds))
	f.mu.Lock()
	defer f.mu.Unlock()
	key = floorKey{queue: req.Queue, kinds: strings.Join(kinds, " ")} // no name has a blank
	thin = f.thin[key]
	key.resets = f.resets
	fl := f.by[key]
	if fl == nil || fl.looked.Elapsed() > max(lookEvery, lookShare*fl.took) {
		return key, fromBottom(), true, thin
	}
	return key, fl.pairs, false, thin
}

func fromBottom() (from [pacht.MaxPriority]pair) {
	for i := range from {
		from[i] = bottom
	}
	return from
}

// brought takes in how many jobs a claim brought in all. One that got as many as it asked for, and
// asked for few, says nothing of the queue.
func (f *floors) brought(key floorKey, jobs, limit int) {
	key.resets = 0
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case jobs >= gateFrom:
		delete(f.thin, key)
	case jobs < limit:
		if f.thin == nil {
			f.thin = map[floorKey]bool{}
		}
		f.thin[key] = true
	}
}

// learn takes in what a claim gave, that was full or short of its limit.
func (f *floors) learn(key floorKey, began clock.Instant, full, short bool, jobs []pacht.JobInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key.resets != f.resets {
		return
	}
	if short {
		delete(f.by, key)
		return
	}
	fl := f.by[key]
	switch {
	case full:
		if f.by == nil {
			f.by = map[floorKey]*floor{}
		}
		fl = &floor{pairs: fromBottom(), looked: began, took: began.Elapsed()}
		f.by[key] = fl
	case fl == nil:
		return // reset in between
	}
	for _, j := range jobs {
		at := pair{j.RunAt.UnixMicro(), int64(j.ID)}
		if p := &fl.pairs[j.Priority-1]; at.compare(*p) > 0 {
			*p = at
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
	f.by = nil
	f.resets++
}

func floorArgs(from [pacht.MaxPriority]pair) []any {
	var args []any
	for _, p := range from {
		args = append(args, p.runAt, p.id)
	}
	return args
}
