package worker

import "sync"

// events hands events to the user's function, in order, from one goroutine. What does not
// fit into the buffer is dropped and counted: work never waits for a listener.
type events struct {
	fn    func(Event)
	queue chan Event

	mu      sync.Mutex
	dropped int
	closed  bool
}

func newEvents(fn func(Event)) *events { return &events{fn: fn, queue: make(chan Event, 4096)} }

// run hands on events until close, and then says what was dropped at the end.
func (e *events) run() {
	for ev := range e.queue {
		e.fn(ev)
	}
	e.mu.Lock()
	dropped := e.dropped
	e.mu.Unlock()
	if dropped > 0 {
		e.fn(Event{Type: EventDropped, Count: dropped})
	}
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	close(e.queue)
}

func (w *Worker) tell(ev Event) {
	e := w.events
	if e.fn == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed { // Run has returned; a wedged handler came back
		return
	}
	if e.dropped > 0 && e.offer(Event{Type: EventDropped, Count: e.dropped}) {
		e.dropped = 0
	}
	if !e.offer(ev) {
		e.dropped++
	}
}

func (e *events) offer(ev Event) bool {
	select {
	case e.queue <- ev:
		return true
	default:
		return false
	}
}
