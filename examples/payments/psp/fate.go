package psp

import (
	"strconv"
	"sync"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// fate is what will happen to one call: decided by the seed, the key and how often the key was
// seen, so that a run can be repeated whatever order the calls come in.
type fate struct {
	before, after time.Duration // how long it takes to the charge, and from there to the answer
	failBefore    bool          // 503, and nothing was charged
	failAfter     bool          // charged, and then the answer is lost or a 502
	drop          bool          // of failAfter: the connection is cut instead of a 502
	decline       bool
}

type fates struct {
	cfg  Config
	mu   sync.Mutex
	seen map[string]int
}

func (f *fates) of(key string) fate {
	f.mu.Lock()
	f.seen[key]++
	nth := f.seen[key]
	f.mu.Unlock()

	// Whether a card is declined does not change from call to call.
	decline := clock.Seeded(f.cfg.Seed, "decline", key).Float64() < f.cfg.DeclineRate
	r := clock.Seeded(f.cfg.Seed, "call", key, strconv.Itoa(nth))
	took := time.Duration((0.5 + r.Float64()) * float64(f.cfg.Latency))
	before := time.Duration(r.Float64() * float64(took))
	return fate{
		before: before, after: took - before,
		failBefore: r.Float64() < f.cfg.FailRate,
		failAfter:  r.Float64() < f.cfg.LoseRate,
		drop:       r.Float64() < 0.5,
		decline:    decline,
	}
}

// gate holds answers back once a number of references have had theirs, until it is opened: so
// that whoever watches the callers can be sure that some of them wait.
type gate struct {
	free int // how many references may pass before it is opened

	mu     sync.Mutex
	passed map[string]bool
	open   chan struct{}
}

func newGate(free int) *gate {
	return &gate{free: free, passed: map[string]bool{}, open: make(chan struct{})}
}

// pass waits until the answer for this reference may go out; false if the caller went away.
func (g *gate) pass(gone <-chan struct{}, reference string) bool {
	g.mu.Lock()
	ok := g.passed[reference] || len(g.passed) < g.free
	if ok {
		g.passed[reference] = true
	}
	g.mu.Unlock()
	if ok {
		return true
	}
	select {
	case <-g.open:
		return true
	case <-gone:
		return false
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}
