package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// S017: outcomes and the watcher collide all the time, because nothing is renewed and each
// handler takes about as long as its lease. Conflicts are normal outcomes, told of and never
// fatal: the worker goes on, and each job ends once.
func TestCollisionsWithTheWatcherAreNormal(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &faulty{store: db.open(t)}
		const ttl = 300 * time.Millisecond
		cfg := quick(10, func(_ context.Context, job *pacht.Job[task]) error {
			// Around the lease's end, and sooner with each attempt: a busy machine gets through too.
			time.Sleep(ttl + time.Duration(job.Args.N%7-3)*2*time.Millisecond - time.Duration(job.Attempt-1)*15*time.Millisecond)
			return nil
		})
		cfg.Watch.Period, cfg.Watch.Poll = 10*time.Millisecond, 10*time.Millisecond
		w := start(t, s, cfg)
		s.busyRenew.Store(true) // no renewal gets through, and none fails
		ids := enqueue(t, s, 60, pacht.TTL(ttl), pacht.MaxCrashes(1000), pacht.MaxAttempts(1000))
		for _, id := range ids {
			becomes(t, s, id, pacht.Completed)
			completed := 0
			for _, a := range ledger(t, s, id) {
				if a.NextStatus == pacht.Completed {
					completed++
				}
			}
			if completed != 1 {
				t.Errorf("job %d completed %d times: %+v", id, completed, ledger(t, s, id))
			}
		}
		if w.seen.count(worker.EventRefused) == 0 && !anyLate(t, s, ids) {
			t.Error("nothing collided: this run proves nothing")
		}
		checked(t, s)
	})
}

func anyLate(t *testing.T, s pacht.Reader, ids []pacht.ID) bool {
	for _, id := range ids {
		for _, a := range ledger(t, s, id) {
			if a.Late {
				return true
			}
		}
	}
	return false
}
