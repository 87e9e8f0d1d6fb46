package worker

import (
	"context"
	"os"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// beatEvery is how often a worker says that it lives. No lease depends on it.
const beatEvery = 5 * time.Second

// beatLoop keeps this process's row in the table of workers.
func (w *Worker) beatLoop() {
	host, _ := os.Hostname() // for people; a host may have no name
	info := pacht.WorkerInfo{
		Owner: w.owner, Host: host, PID: os.Getpid(),
		Queues: w.cfg.queues(), Kinds: w.kinds, BeatEvery: beatEvery,
	}
	for {
		info.LastUntil = time.Time{}
		for _, h := range w.holds.list() {
			h.mu.Lock()
			if h.until.After(info.LastUntil) {
				info.LastUntil = h.until
			}
			h.mu.Unlock()
		}
		call, cancel := context.WithTimeout(w.base, callTimeout)
		if err := w.store.Beat(call, info); err != nil && w.base.Err() == nil {
			w.trouble.met(callBeat, err)
		} else if err == nil {
			w.trouble.over(callBeat)
		}
		cancel()
		if clock.Sleep(w.base, clock.Jitter(beatEvery)) != nil {
			break
		}
	}
	// The base context has ended; a last word in order, bounded.
	call, cancel := context.WithTimeout(context.WithoutCancel(w.base), time.Second)
	defer cancel()
	if err := w.store.Leave(call, w.owner); err != nil {
		w.log.Warn("could not sign off; the watcher will take a look at this owner", "owner", w.owner, "error", err)
	}
}
