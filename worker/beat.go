package worker

import (
	"context"
	"os"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// beatEvery is how often a worker says that it lives. No lease depends on it.
const beatEvery = 5 * time.Second

// beatLoop keeps this process's row in the table of workers. It beats at once when it comes to
// hold a lease so short that the watcher would look too late for it, though not more than
// once a second.
func (w *Worker) beatLoop() {
	host, _ := os.Hostname() // for people; a host may have no name
	info := pacht.WorkerInfo{
		Owner: w.owner, Host: host, PID: os.Getpid(),
		Queues: w.cfg.queues(), Kinds: w.kinds, BeatEvery: beatEvery,
	}
	shorter := w.holds.subscribe()
	for w.base.Err() == nil {
		w.beat(&info)
		last := clock.Now()
		next := time.NewTimer(clock.Jitter(beatEvery))
		for waits := true; waits; {
			select {
			case <-w.base.Done():
				waits = false
			case <-next.C:
				waits = false
			case <-shorter:
				waits = w.holds.shortest() == longestTick // of long leases the next beat tells in time
			}
		}
		next.Stop()
		_ = clock.Sleep(w.base, time.Second-last.Elapsed()) // the end of base shows in the loop
	}
	// The base context has ended; a last word in order, bounded.
	call, cancel := context.WithTimeout(context.WithoutCancel(w.base), time.Second)
	defer cancel()
	failpoint.Here("worker.leave")
	if err := w.store.Leave(call, w.owner); err != nil {
		w.log.Warn("could not sign off; the watcher will take a look at this owner", "owner", w.owner, "error", err)
	}
}

func (w *Worker) beat(info *pacht.WorkerInfo) {
	info.FirstUntil, info.LastUntil = time.Time{}, time.Time{}
	for _, h := range w.holds.list() {
		h.mu.Lock()
		until := h.until
		h.mu.Unlock()
		if until.After(info.LastUntil) {
			info.LastUntil = until
		}
		if info.FirstUntil.IsZero() || until.Before(info.FirstUntil) {
			info.FirstUntil = until
		}
	}
	call, cancel := context.WithTimeout(w.base, callTimeout)
	defer cancel()
	failpoint.Here("worker.beat")
	if err := w.store.Beat(call, *info); err == nil {
		w.trouble.over(callBeat)
	} else if w.base.Err() == nil {
		w.trouble.met(callBeat, err)
	}
}
