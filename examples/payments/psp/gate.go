package psp

import "sync"

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
