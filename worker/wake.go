package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

const (
	// sleepLife is how long a row of sleepers stands for a worker that was killed. It is written
	// anew at half of that.
	sleepLife = time.Minute
	// lookShare: a look for due jobs that took long is not made again before this many times
	// what it took. One quicker than quickLook needs no rest.
	lookShare = 20
	quickLook = time.Millisecond
)

// waker wakes the claim loops of one worker: by notices, and by one look for all idle queues
// together every Config.Poll, which finds what no notice told of. A notice is a hint: without
// any, every job is found by the look.
//
// Each queue has a nap (nap.go). What is to be written for them goes out from here, so that a
// call that hangs makes no claim wait.
type waker struct {
	w      *Worker
	polls  []time.Duration
	naps   map[string]*nap
	kicked chan struct{} // has a token while a row may have to be written or taken away
	quiet  chan struct{} // has a token once a queue has had fewer jobs than slots

	mu    sync.Mutex
	works bool // notices arrive
	mute  bool // it was logged that none do

	looked clock.Instant // when the last look came back
	rest   time.Duration // until the next one, and after a claim since then that found nothing
}

func newWaker(w *Worker) *waker {
	k := &waker{w: w, naps: map[string]*nap{}, kicked: make(chan struct{}, 1), quiet: make(chan struct{}, 1)}
	for _, d := range fastPolls {
		if d < w.cfg.Poll {
			k.polls = append(k.polls, d)
		}
	}
	for _, q := range w.queues {
		k.naps[q.name] = &nap{k: k, queue: q.name, stir: make(chan struct{}, 1)}
	}
	return k
}

// run listens, looks and writes until ctx ends.
func (k *waker) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { k.look(ctx) })
	all.Go(func() { k.keep(ctx) })
	if k.w.cfg.NoListen {
		return
	}
	all.Go(func() {
		select { // until then nobody waits for a notice, and it would be a connection for nothing
		case <-k.quiet:
		case <-ctx.Done():
			return
		}
		if err := k.w.store.Listen(ctx, k.w.owner, pacht.Listener{Works: k.listening, Wake: k.heard}); err != nil {
			k.w.trouble.met(callListen, err)
		}
	})
}

func (k *waker) kick() {
	select {
	case k.kicked <- struct{}{}:
	default:
	}
}

// heard takes in a notice. It may be meant for another worker of that queue.
func (k *waker) heard(queue string) {
	n := k.naps[queue]
	if n == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !n.takesPart() {
		return
	}
	n.heard = true
	if n.down || n.idle {
		n.poke()
	}
}

// listening takes in whether notices arrive. When they begin to, all queues are asked once,
// and lie down; when they end, all get up.
func (k *waker) listening(works bool, why error) {
	k.mu.Lock()
	changed := works != k.works
	say := !works && !k.mute || works && k.mute
	k.works, k.mute = works, !works
	if changed {
		for _, n := range k.naps {
			n.wants, n.down, n.due = false, false, works
			n.poke()
		}
		k.kick()
	}
	k.mu.Unlock()
	switch {
	case say && works:
		k.w.log.Info("notices of new jobs arrive again", "owner", k.w.owner)
	case say:
		k.w.log.Warn("no notices of new jobs arrive; idle queues are polled", "owner", k.w.owner, "every", k.w.cfg.Poll, "error", why)
	}
}

// look asks for due jobs of all queues that have nothing else to wait for.
func (k *waker) look(ctx context.Context) {
	failed := time.Duration(0)
	for {
		k.mu.Lock()
		wait := max(clock.Jitter(k.w.cfg.Poll*11/10), k.rest, failed) // the interval and up to a fifth more
		k.mu.Unlock()
		if clock.Sleep(ctx, wait) != nil {
			return
		}
		queues := k.idle()
		if len(queues) == 0 || k.w.trouble.failing(callRenew) {
			continue
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		due, err := k.w.store.Due(call, queues, k.w.kinds)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			k.w.trouble.met(callLook, err)
			failed = min(max(2*failed, 50*time.Millisecond), 5*time.Second)
			continue
		}
		failed = 0
		k.w.trouble.over(callLook)
		k.found(due)
	}
}

func (k *waker) idle() (queues []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(k.naps)) {
		if k.naps[queue].idle {
			queues = append(queues, queue)
		}
	}
	return queues
}

func (k *waker) found(due pacht.Due) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked = clock.Now()
	if k.rest = 0; due.Took >= quickLook {
		k.rest = lookShare * due.Took
	}
	for _, queue := range due.Queues {
		if n := k.naps[queue]; n != nil {
			n.due = true
			n.poke()
		}
	}
}

// keep writes the rows of queues that want one, again and again, and takes those away that are
// not wanted any more. An error means that the queue is polled.
func (k *waker) keep(ctx context.Context) {
	failed := time.Duration(0)
	for ctx.Err() == nil {
		lie, rise, next := k.todo()
		err := k.write(ctx, lie, rise)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			k.w.trouble.met(callSleep, err)
			failed = min(max(2*failed, time.Second), sleepLife/4)
			next = failed
		default:
			k.w.trouble.over(callSleep)
			failed = 0
		}
		timer := time.NewTimer(next)
		var kicked <-chan struct{} // while it fails nothing is urgent
		if failed == 0 {
			kicked = k.kicked
		}
		select {
		case <-kicked:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	k.leave()
}

// todo says on which queues to lie down, or to say so again, from which to rise, and when to
// ask next.
func (k *waker) todo() (lie, rise []string, next time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next = sleepLife / 2
	now := clock.Now()
	for _, queue := range slices.Sorted(maps.Keys(k.naps)) {
		n := k.naps[queue]
		age := now.Since(n.written)
		switch {
		case n.wants && k.works && (!n.down || age >= sleepLife/2):
			lie = append(lie, queue)
			n.row, n.written = true, now // it may come to stand, whatever the answer is
		case n.wants && k.works:
			next = min(next, sleepLife/2-age)
		case n.row && age >= sleepLife:
			n.row = false // it has lapsed
		case n.row:
			rise = append(rise, queue)
		}
	}
	return lie, rise, next
}

func (k *waker) write(ctx context.Context, lie, rise []string) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if len(lie) > 0 {
		err := k.w.store.Sleep(call, k.w.owner, lie, sleepLife)
		k.lain(lie, err == nil)
		if err != nil {
			return err
		}
	}
	if len(rise) > 0 {
		if err := k.w.store.Rise(call, k.w.owner, rise); err != nil {
			return err
		}
		k.risen(rise)
	}
	return nil
}

// lain takes in that the rows are committed: from now on each enqueue tells, and what one did
// that looked a moment ago is found by the fast polls, which begin anew.
func (k *waker) lain(queues []string, committed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, queue := range queues {
		n := k.naps[queue]
		switch {
		case !committed:
			n.down = false
		case !n.wants || !k.works:
			k.kick() // it has changed its mind meanwhile
		case !n.down:
			n.down, n.step, n.since = true, 0, clock.Now()
			n.poke()
		}
	}
}

func (k *waker) risen(queues []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, queue := range queues {
		k.naps[queue].row = false
	}
}

// leave takes the rows away at once when the worker is told to stop: it may go on for long.
// What is left of them goes with the sign-off, or lapses.
func (k *waker) leave() {
	k.mu.Lock()
	var rows []string
	for queue, n := range k.naps {
		if n.wants, n.down = false, false; n.row {
			rows = append(rows, queue)
		}
	}
	k.mu.Unlock()
	if len(rows) == 0 {
		return
	}
	call, cancel := context.WithTimeout(k.w.base, time.Second)
	defer cancel()
	if err := k.w.store.Rise(call, k.w.owner, rows); err != nil {
		k.w.log.Debug("could not say that this worker takes no more jobs; the sign-off says it again", "owner", k.w.owner, "error", err)
	}
}

// listens says whether notices arrive.
func (k *waker) listens() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.works
}
