package worker

import (
	"context"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// queue is one queue's slots. A handler takes one when it starts, and the answer of its settle
// gives it back: no result is less than stored when the next handler takes its place. While the
// settle of many jobs is under way, as many are claimed ahead, are renewed, and wait for its
// answer (S006).
type queue struct {
	name string
	size int

	mu      sync.Mutex
	used    int           // slots taken
	leaving int           // of them: about to be free, because a settle of many is under way
	next    []*hold       // leased ahead: they wait for those
	closed  bool          // nothing starts any more
	freed   chan struct{} // has a token after there was more room
}

func newQueue(name string, size int) *queue {
	return &queue{name: name, size: size, freed: make(chan struct{}, 1)}
}

// free is how many more jobs may be claimed.
func (q *queue) free() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size - (q.used - q.leaving) - len(q.next)
}

// A place is what becomes of a job that was leased.
type place int

const (
	placeNone place = iota // there is no room for it: release it
	placeSlot              // it has a slot: start it
	placeNext              // give answers it when there is a slot
)

// take finds a place for a job. One that was claimed had room when the claim was sent; if the settle
// for which it was claimed ahead has failed since, it waits for the next try: were it released, that
// would be settled no better, and its room be claimed again and again.
func (q *queue) take(h *hold, adopted bool) place {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed || adopted && q.used-q.leaving+len(q.next) >= q.size:
		return placeNone
	case q.used < q.size:
		q.used++
		return placeSlot
	}
	q.next = append(q.next, h)
	return placeNext
}

// aheadFrom is how many jobs a settle has at least for which others are claimed ahead: it is
// over soon if it has few, and what is claimed ahead counts a crash if the process dies.
const aheadFrom = 50

// leave takes in that the settle of n jobs is sent: their slots are about to be free. It answers
// for how many of them others are claimed ahead, which give takes back.
func (q *queue) leave(n int) int {
	if n < aheadFrom {
		return 0
	}
	q.mu.Lock()
	q.leaving += n // two settlers may be at it
	q.mu.Unlock()
	q.tell()
	return n
}

// give takes in the answer: n slots are free. All are given at once, so that the next claim
// takes as many. It answers who has one now of those who were claimed ahead.
func (q *queue) give(n, leaving int) (start []*hold) {
	q.mu.Lock()
	q.leaving -= leaving
	q.used -= n
	start = q.next[:min(len(q.next), max(0, q.size-q.used))]
	q.next = q.next[len(start):]
	q.used += len(start)
	q.mu.Unlock()
	q.tell()
	return start
}

// close answers what was leased and has not started, which nothing does any more.
func (q *queue) close() (unstarted []*hold) {
	q.mu.Lock()
	defer q.mu.Unlock()
	unstarted, q.next, q.closed = q.next, nil, true
	return unstarted
}

func (q *queue) tell() {
	select {
	case q.freed <- struct{}{}:
	default:
	}
}

// room waits until there is room and says how much; 0 if ctx ended.
func (q *queue) room(ctx context.Context) int {
	for {
		if n := q.free(); n > 0 && ctx.Err() == nil {
			return n
		}
		select {
		case <-ctx.Done():
			return 0
		case <-q.freed:
		}
	}
}

// holds is the registry of what this process holds.
type holds struct {
	mu      sync.Mutex
	all     map[pacht.Ref]*hold
	shorter []chan struct{} // told when a lease came that needs a shorter tick
	tick    time.Duration   // of the leases held: 0 if none
	empty   chan struct{}   // closed while nothing is held
}

func newHolds() *holds {
	e := make(chan struct{})
	close(e)
	return &holds{all: map[pacht.Ref]*hold{}, empty: e}
}

// tickOf is how often a lease of this TTL needs to be looked at.
func tickOf(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 5*time.Millisecond), longestTick)
}

const longestTick = time.Second

func (s *holds) add(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		s.empty = make(chan struct{})
	}
	s.all[h.job.Ref()] = h
	if t := tickOf(h.job.TTL); s.tick == 0 || t < s.tick {
		s.tick = t
		for _, c := range s.shorter {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

func (s *holds) remove(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[h.job.Ref()] != h {
		return
	}
	delete(s.all, h.job.Ref())
	if len(s.all) == 0 {
		s.tick = 0
		close(s.empty)
	}
}

// list answers what is held now, and forgets ticks that no lease needs any more.
func (s *holds) list() []*hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*hold, 0, len(s.all))
	s.tick = 0
	for _, h := range s.all {
		list = append(list, h)
		if t := tickOf(h.job.TTL); s.tick == 0 || t < s.tick {
			s.tick = t
		}
	}
	return list
}

// refs answers which leases are held now.
func (s *holds) refs() map[pacht.Ref]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	refs := make(map[pacht.Ref]bool, len(s.all))
	for ref := range s.all {
		refs[ref] = true
	}
	return refs
}

// drained is closed while nothing is held.
func (s *holds) drained() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.empty
}

// subscribe answers a channel that is told when a lease comes which needs a shorter tick.
func (s *holds) subscribe() <-chan struct{} {
	shorter := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shorter = append(s.shorter, shorter)
	return shorter
}

// shortest is the tick of the shortest lease held.
func (s *holds) shortest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tick == 0 {
		return longestTick
	}
	return s.tick
}

// ticker returns a function that waits for the next look at the leases: a tick of the
// shortest one, also of one that comes meanwhile. No lease that comes puts the look off (R8).
// It returns false when ctx ends.
func (s *holds) ticker(ctx context.Context) func() bool {
	shorter, tick := s.subscribe(), s.shortest
	return func() bool {
		since := clock.Now()
		t := time.NewTimer(tick())
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return false
			case <-t.C:
				return true
			case <-shorter:
				t.Reset(tick() - since.Elapsed())
			}
		}
	}
}
