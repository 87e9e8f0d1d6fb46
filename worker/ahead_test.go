package worker_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// stalled does not answer the settles of many jobs until it is told to.
type stalled struct {
	store
	waits atomic.Bool
	goOn  chan struct{}
}

func (s *stalled) Settle(ctx context.Context, settlements []pacht.Settlement) ([]pacht.Settled, error) {
	if len(settlements) >= 50 {
		s.waits.Store(true)
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.store.Settle(ctx, settlements)
}

// ahead runs a worker of 100 slots on 300 jobs until it waits for the answer of a settle of many jobs, and
// has claimed others ahead. It answers how many handlers have begun, and the leases of those
// whose handlers have not.
func ahead(t *testing.T, s *stalled) (ids []pacht.ID, w *running, begun *atomic.Int32, waiting func() []pacht.JobInfo) {
	t.Helper()
	ids = enqueue(t, s, 300, pacht.TTL(3*time.Second))
	begun = &atomic.Int32{}
	all := make(chan struct{})
	ran := make([]atomic.Bool, 300)
	w = start(t, s, quick(100, func(ctx context.Context, job *pacht.Job[task]) error {
		if ran[job.Args.N].Swap(true) {
			t.Errorf("job %d ran twice", job.ID)
		}
		if begun.Add(1) == 100 {
			close(all)
		}
		<-all // so that they return together
		return nil
	}))
	waiting = func() (list []pacht.JobInfo) {
		held, err := s.HeldBy(t.Context(), w.Owner())
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range held.Jobs {
			var args task
			if err := json.Unmarshal(job.Args, &args); err != nil {
				t.Fatal(err)
			}
			if !ran[args.N].Load() {
				list = append(list, job)
			}
		}
		return list
	}
	eventually(t, 20*time.Second, "jobs are claimed ahead, and all slots have begun", func() bool {
		return s.waits.Load() && len(waiting()) >= 50 && int(begun.Load()) == 100+w.seen.count(worker.EventSettled)
	})
	return ids, w, begun, waiting
}

// S006: what is claimed ahead, while the settle of many jobs is under way, waits for a slot, is
// renewed meanwhile, and runs once.
func TestWhatIsClaimedAheadIsRenewedAndWaitsForItsSlot(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &stalled{store: db.open(t), goOn: make(chan struct{})}
		ids, w, begun, waiting := ahead(t, s)
		eventually(t, 20*time.Second, "their leases are extended", func() bool {
			for _, job := range waiting() {
				if !job.LeaseUntil.After(job.ClaimedAt.Add(job.TTL)) {
					return false
				}
			}
			return true
		})
		settled := w.seen.count(worker.EventSettled)
		if n := int(begun.Load()); n > 100+settled {
			t.Errorf("%d handlers have begun on 100 slots, and %d have been answered", n, settled)
		}
		close(s.goOn)
		eventually(t, 20*time.Second, "all are done", func() bool { return w.seen.count(worker.EventSettled) == 300 })
		if err := w.end(); err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			if st, n := status(t, s, id), len(ledger(t, s, id)); st != pacht.Completed || n != 1 {
				t.Errorf("job %d is %s after %d attempts", id, st, n)
			}
		}
		checked(t, s)
	})
}

// S087: what was claimed ahead and has not started is Pending at once when the worker stops,
// with its attempt given back.
func TestStopReleasesWhatWasClaimedAhead(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &stalled{store: db.open(t), goOn: make(chan struct{})}
		_, w, begun, waiting := ahead(t, s)
		had, before := waiting(), begun.Load()
		w.stop()
		close(s.goOn)
		<-w.done
		if w.err != nil {
			t.Error(w.err)
		}
		if begun.Load() != before {
			t.Errorf("%d handlers have begun after the stop", begun.Load()-before)
		}
		for _, was := range had {
			if j := job(t, s, was.ID); j.Status != pacht.Pending || j.Attempt != 0 || j.Token != was.Token {
				t.Errorf("claimed ahead, and after the stop %+v", j)
			}
		}
		checked(t, s)
	})
}

// refusing fails the settles of many jobs at once, as a table does that cannot be written.
type refusing struct {
	store
	failed atomic.Int32
	over   atomic.Bool
}

func (s *refusing) Settle(ctx context.Context, settlements []pacht.Settlement) ([]pacht.Settled, error) {
	if len(settlements) >= 50 && !s.over.Load() {
		s.failed.Add(1)
		return nil, errNetwork
	}
	return s.store.Settle(ctx, settlements)
}

// S006, S022: settles that fail, again and again, have no more jobs claimed ahead than there are slots.
func TestSettlesThatFailHoardNoLeases(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &refusing{store: db.open(t)}
		ids := enqueue(t, s, 600)
		var begun atomic.Int32
		all := make(chan struct{})
		w := start(t, s, quick(100, func(context.Context, *pacht.Job[task]) error {
			if begun.Add(1) == 100 {
				close(all)
			}
			<-all
			return nil
		}))
		eventually(t, 20*time.Second, "settles fail again and again", func() bool { return s.failed.Load() >= 6 })
		held, err := s.HeldBy(t.Context(), w.Owner())
		if err != nil || len(held.Jobs) > 200 {
			t.Errorf("%d leases are held on 100 slots, %v", len(held.Jobs), err)
		}
		s.over.Store(true)
		for _, id := range ids {
			becomes(t, s, id, pacht.Completed)
			if n := len(ledger(t, s, id)); n != 1 {
				t.Errorf("job %d has %d attempts", id, n)
			}
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
		checked(t, s)
	})
}
