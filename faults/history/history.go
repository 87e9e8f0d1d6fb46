package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
)

// History is what all clients of one run saw. Its times are those of the machine's own clock,
// not of the one that tests may set (internal/clock): it stands for the database's.
type History struct {
	alone bool // calls do not overlap: a claim by id that takes nothing had nothing to take
	begun time.Time

	mu      sync.Mutex
	aged    int64 // microseconds
	count   int   // events so far
	jobs    map[pacht.ID]*track
	names   map[string]name
	seen    map[name]map[pacht.ID]bool // where an owner was seen at all
	claims  []*event                   // without an answer
	passes  []*event                   // without an answer
	closed  bool
	direct  []Finding // found while writing down, without the model
	trouble []error   // errors where nothing was broken on purpose
}

// track is the calls of one job.
type track struct {
	job
	events []*event
}

// New begins a history whose calls may overlap.
func New() *History {
	return &History{begun: time.Now(), jobs: map[pacht.ID]*track{}, names: map[string]name{}, seen: map[name]map[pacht.ID]bool{}}
}

// NewAlone begins a history whose clients call one after the other, in one goroutine. The
// database may be aged between calls, see Aged.
func NewAlone() *History {
	h := New()
	h.alone = true
	return h
}

// Aged says that every stored time was moved back by d, as if it had passed (storetest's Age).
// No call may be under way.
func (h *History) Aged(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.aged += d.Microseconds()
}

// Events is how many events were written down: calls, and for batches rows.
func (h *History) Events() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// Trouble is the errors of calls whose connection nobody had broken.
func (h *History) Trouble() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.trouble...)
}

// moment is now on the two clocks: the monotonic one that orders calls, and the wall clock.
func (h *History) moment() (mono, wall int64) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Sub(h.begun).Nanoseconds(), now.UnixMicro() + h.aged
}

// name gives an owner its number. Called with the lock held.
func (h *History) name(s string) name {
	if s == "" {
		return 0
	}
	n := h.names[s]
	if n == 0 {
		n = name(len(h.names) + 1)
		h.names[s] = n
	}
	return n
}

// add writes down one event of a job. Jobs of nobody's are passed over: a pass of the watcher
// meets what earlier histories left in the same tables.
func (h *History) add(e *event, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.jobs[e.ref.Job]
	if t == nil {
		if e.verb == claimed {
			h.find(e, "R1: a claim took a job that nobody had enqueued")
		}
		return
	}
	h.count++
	e.owner = h.name(owner)
	e.holder = h.name(e.job.LeaseOwner)
	h.see(e.holder, e.ref.Job)
	if e.refused == lost {
		e.holder = h.name(e.loss.Owner)
	}
	h.see(e.holder, e.ref.Job)
	if e.verb == expired {
		h.see(e.owner, e.ref.Job)
	}
	for _, a := range e.ledger {
		n := h.name(a.Owner)
		e.owners = append(e.owners, n)
		h.see(n, e.ref.Job)
	}
	t.events = append(t.events, e)
}

func (h *History) see(owner name, job pacht.ID) {
	if owner == 0 {
		return
	}
	if h.seen[owner] == nil {
		h.seen[owner] = map[pacht.ID]bool{}
	}
	h.seen[owner][job] = true
}

// find notes what is wrong whatever the order of the calls. Called with the lock held.
func (h *History) find(e *event, why string) {
	h.direct = append(h.direct, Finding{Job: e.ref.Job, Why: why, Call: e.String(), After: h.count})
}

// stamp checks that the database's clock read what this machine's did, between call and
// return: the bounds of answers without a stamp depend on it.
func (h *History) stamp(c *call, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if us := now.UnixMicro() + h.aged; !c.at.holds(us) {
		h.find(&event{}, fmt.Sprintf("clock: an answer of a %s bears the time %d, and was asked for from %d to %d", c.verb, us, c.at.lo, c.at.hi))
	}
}

// troubled notes an error that nobody had made.
func (h *History) troubled(c *call, err error) {
	if c.lossy {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = append(h.trouble, fmt.Errorf("client %d, %s, connection not broken: %w", c.client, c.verb, err))
}

// close gives the calls without an answer to the jobs that they may have reached. A claim
// bears an owner of its own, so whoever was ever seen with that owner was taken by it; what
// nobody ever saw with it has no row with it in the ledger either, which is read at the end.
// An expiry that no pass told of was made by one without an answer.
func (h *History) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for _, c := range h.claims {
		for id := range h.seen[c.owner] {
			e := *c
			e.ref.Job = id
			e.open, e.sure, e.at.hi, e.ret = true, true, forever, forever
			h.jobs[id].events = append(h.jobs[id].events, &e)
			h.count++
		}
	}
	if len(h.passes) == 0 {
		return
	}
	first := slices.MinFunc(h.passes, func(a, b *event) int { return cmp.Compare(a.call, b.call) })
	for id, t := range h.jobs {
		told := map[pacht.Token]bool{}
		silent := map[pacht.Token]bool{}
		for _, e := range t.events {
			if e.verb == expired {
				told[e.ref.Token] = true
			}
			for _, a := range e.ledger {
				if a.Outcome == pacht.OutcomeExpired && a.NextStatus != pacht.Processing {
					silent[a.Token] = true
				}
			}
		}
		for token := range silent {
			if told[token] {
				continue
			}
			e := *first
			e.ref = pacht.Ref{Job: id, Token: token}
			e.open, e.at.hi, e.ret = true, forever, forever
			t.events = append(t.events, &e)
			h.count++
		}
	}
}

// unansweredEvents is how many of the events never had an answer.
func (h *History) unansweredEvents() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.jobs {
		for _, e := range t.events {
			if e.open && e.verb != mayRenew {
				n++
			}
		}
	}
	return n
}
