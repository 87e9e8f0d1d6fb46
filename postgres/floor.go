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
// rows than asked, and at least every second or 50 looks' time, whichever is longer, up to five minutes.
// Where so much is in the way that looks take long, they are made a tenth of the time at most, or an idle
// worker would do nothing else: until then claims that come short do without, and go on from what the
// last look has seen. Long is what the client sees, twice in a row: a connection was opened, or the network
// stood still, in one of them.
//
// Of several processes each would walk over all that the others hold. So claims that go in turn
// leave word of how far they have got (table floors), and the next one goes on from there, whoever
// makes it, for as long as the look from the start holds on which that rests. Hints that rest on
// different looks are never mixed: one would pass over what the other has only begun to take. Nor is
// anything told of rows that are younger than a second: those of before may still be committed, and
// are found by each store's own floor, as if it were alone.
const (
	lookEvery = time.Second
	lookShare = 50
	lookMost  = 5 * time.Minute // what a look took may be a jump of the clock, or a wait for a standby

	lookDear     = 50 * time.Millisecond
	lookRest     = 10 // times what a dear look took must pass until the next one
	lookRestMost = 10 * time.Second
)

// floors holds the floor of each queue and set of kinds.
type floors struct {
	mu     sync.Mutex
	by     map[floorKey]*floor
	resets int
}

// mostFloors bounds what is kept of queues whose names come and go.
const mostFloors = 1000

type floorKey struct{ queue, kinds string }

// floor is what this store's claims have learned of a queue.
type floor struct {
	known  bool // how far claims have got; else the next one looks from the start
	pairs  [pacht.MaxPriority]pair
	look   int64         // the look from the start on which that rests
	since  clock.Instant // it holds from then
	life   time.Duration // for so long
	resets int           // how often floors had been reset before this store looked, and told of it
	depth  depth
	looked clock.Instant    // when this store has looked from the start itself
	took   [2]time.Duration // and for how long: the last look and the one before
}

// dear is what a look from the start takes, if that is much.
func (fl *floor) dear() (took time.Duration, yes bool) {
	took = min(fl.took[0], fl.took[1])
	return took, took >= lookDear
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
	rests  bool // no look from the start comes after it
	depth  depth
	resets int   // what was seen before a reset may be behind what was put back
	alone  bool  // this store has put a job back since it looked last: it takes nobody's word
	look   int64 // the look on which from rests, by the database's clock in microseconds since 1970
	until  int64 // if others have given their word: how long that holds, likewise
	life   time.Duration
	turn   bool // the claim has the turn: where it gets to is told, if it may be
}

func (f *floors) start(req pacht.ClaimRequest) start {
	at := start{key: keyOf(req)}
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.of(at.key)
	at.depth, at.resets, at.alone = fl.depth, f.resets, fl.resets != f.resets
	took, dear := fl.dear()
	at.rests = dear && fl.looked.Elapsed() < min(lookRest*took, lookRestMost)
	// With little to expect, a dear look goes at once instead of after a claim that comes short.
	at.full = !fl.known || fl.since.Elapsed() > fl.life || dear && !at.rests && fl.depth == thin
	if at.full {
		at.from = fromBottom()
	} else {
		at.from, at.look = fl.pairs, fl.look
	}
	return at
}

func keyOf(req pacht.ClaimRequest) floorKey {
	return floorKey{req.Queue, strings.Join(slices.Sorted(slices.Values(req.Kinds)), " ")} // no name has a blank
}

// of answers what is kept of a queue. The caller holds mu.
func (f *floors) of(key floorKey) *floor {
	fl := f.by[key]
	if fl == nil {
		if f.by == nil || len(f.by) >= mostFloors {
			f.by = map[floorKey]*floor{}
		}
		fl = &floor{}
		f.by[key] = fl
	}
	return fl
}

func fromBottom() (from [pacht.MaxPriority]pair) {
	for i := range from {
		from[i] = bottom
	}
	return from
}

// goOn takes in how far claims have got in a priority, on which look that rests, and until when it
// holds; now is the database's clock.
func (a *start) goOn(priority int, at pair, look, until, now int64) {
	if a.alone || until <= now || look < a.look { // this store has looked itself since then
		return
	}
	if a.look != look { // then from is another look's, or the bottom
		a.from = fromBottom()
	}
	a.full, a.look, a.until, a.life = false, look, until, time.Duration(until-now)*time.Microsecond
	if p := &a.from[priority-1]; at.compare(*p) > 0 {
		*p = at
	}
}

// tells says whether others may go on from where this claim gets to.
func (a *start) tells() bool { return a.turn && (a.full || a.until != 0) }

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
	switch fl := f.of(at.key); {
	case jobs >= gateFrom:
		fl.depth = deep
	case jobs < limit:
		fl.depth = thin
	}
}

// learn takes in what a claim gave, that began then, and was full or short of its limit.
func (f *floors) learn(at start, began clock.Instant, short bool, claims pacht.Claims) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.of(at.key)
	if at.full {
		fl.looked, fl.took = clock.Now(), [2]time.Duration{began.Elapsed(), fl.took[0]}
	}
	if at.resets != f.resets {
		return
	}
	if at.full && (at.turn || short) { // else what others told of before may pass over the rest of it
		fl.resets = at.resets
	}
	_, dear := fl.dear()
	if short && (at.full && !dear || !at.full && !at.rests) {
		fl.known = false
		return
	}
	if at.full {
		now := claims.Now.UnixMicro()
		at.look, at.life = now, min(max(lookEvery, lookShare*fl.took[0]), lookMost)
		if short { // it has seen all that is due; others are not told of that, so not for long
			at.life = min(at.life, lookRestMost)
			for i := range at.from {
				at.from[i] = pair{now - lookEvery.Microseconds(), math.MinInt64}
			}
		}
	}
	switch {
	case at.full || at.until != 0:
		fl.known, fl.pairs, fl.look, fl.since, fl.life = true, at.from, at.look, began, at.life
	case !fl.known || fl.look != at.look:
		return // another claim has looked meanwhile
	}
	for _, j := range claims.Jobs {
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
