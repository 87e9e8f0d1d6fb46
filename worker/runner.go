package worker

import "sync"

// runners are the goroutines in which handlers run: as many as handlers block, and few if
// they do not, because a runner that is done takes the next job. A goroutine for each job
// would have to grow its stack each time.
type runners struct {
	work func(*hold)

	mu      sync.Mutex
	waiting []*hold
	idle    []chan struct{} // the last to become idle is the first to be woken
	woken   bool            // one is on its way, and has not looked yet
	closed  bool
	looking sync.WaitGroup // runners that are idle or on their way
}

// mostIdle bounds the goroutines that are kept for later.
const mostIdle = 64

// run has the handler of a hold run.
func (r *runners) run(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, h)
	r.wake()
}

// wake sees that somebody comes to look, if anything waits. Called with the lock held.
func (r *runners) wake() {
	if r.woken || len(r.waiting) == 0 {
		return
	}
	r.woken = true
	if n := len(r.idle); n > 0 {
		close(r.idle[n-1])
		r.idle = r.idle[:n-1]
		return
	}
	r.looking.Add(1)
	go r.loop()
}

// loop ends with the worker, when there are enough others, or with runtime.Goexit if a
// handler calls that.
func (r *runners) loop() {
	for {
		h, idle := r.take(true)
		r.looking.Done()
		for h != nil {
			r.work(h)
			h, idle = r.take(false)
		}
		if idle == nil {
			return
		}
		<-idle
	}
}

// take answers the next job; or, if there is none, what tells when to look again; or neither,
// if the runner should end. Before a handler starts, which may block, another runner is on its
// way to look at what waits behind it. woken: the caller is the one that wake has sent.
func (r *runners) take(woken bool) (*hold, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if woken {
		r.woken = false
	}
	if len(r.waiting) > 0 {
		h := r.waiting[0]
		r.waiting[0] = nil
		r.waiting = r.waiting[1:]
		r.wake()
		return h, nil
	}
	if r.closed || len(r.idle) >= mostIdle {
		return nil, nil
	}
	idle := make(chan struct{})
	r.idle = append(r.idle, idle)
	r.looking.Add(1)
	return nil, idle
}

// close ends the idle runners and waits for them. A handler that has not returned by then
// ends its runner when it does.
func (r *runners) close() {
	r.mu.Lock()
	r.closed = true
	for _, idle := range r.idle {
		close(idle)
	}
	r.idle = nil
	r.mu.Unlock()
	r.looking.Wait()
}
