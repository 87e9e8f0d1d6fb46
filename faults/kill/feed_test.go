package kill

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// feeder enqueues jobs as they are done, so that there is always something to do and never much:
// a job that comes back is soon done again by somebody else.
type feeder struct {
	over   chan struct{}
	done   sync.WaitGroup
	once   sync.Once
	store  pacht.Store
	jobs   atomic.Int64   // stored so far
	unsure []pacht.NewJob // stored or not: to be enqueued once more, as they are
}

// feed keeps about so many jobs due, until it is stopped.
func feed(t *testing.T, store pacht.Store, due int) *feeder {
	f := &feeder{over: make(chan struct{}), store: store}
	f.done.Go(func() { f.run(due) })
	t.Cleanup(func() { f.stop() })
	return f
}

// stop ends it, and answers how many jobs there are.
func (f *feeder) stop() int {
	f.once.Do(func() { close(f.over) })
	f.done.Wait()
	return int(f.jobs.Load())
}

func (f *feeder) run(due int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for stopped := (time.Time{}); ; {
		f.more(due)
		select {
		case <-f.over:
			// What is unsure is made sure, unless the server is gone for good.
			if due = 0; stopped.IsZero() {
				stopped = time.Now()
			}
			if f.unsure == nil || time.Since(stopped) > 30*time.Second {
				return
			}
			<-tick.C
		case <-tick.C:
		}
	}
}

// more enqueues what is missing. An error means that the server is down, or a table away, for a
// moment.
func (f *feeder) more(due int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if f.unsure == nil {
		counts, err := f.store.Counts(ctx)
		if err != nil {
			return
		}
		for _, c := range counts {
			due -= int(c.Due)
		}
		f.unsure = f.next(due)
	}
	if answers, err := f.store.Enqueue(ctx, f.unsure); err == nil {
		f.jobs.Add(int64(len(answers)))
		f.unsure = nil
	}
}

func (f *feeder) next(n int) []pacht.NewJob {
	if n <= 0 {
		return nil
	}
	jobs, first := make([]pacht.NewJob, n), int(f.jobs.Load())
	for i := range jobs {
		jobs[i] = pacht.New(lab.Work{N: first + i}, pacht.TTL(ttl), pacht.MaxAttempts(pacht.MaxMaxAttempts), pacht.MaxCrashes(pacht.MaxMaxCrashes),
			pacht.IdempotencyKey(fmt.Sprint("job ", first+i))) // an unanswered enqueue is repeated, and stores nothing twice (R11)
	}
	return jobs
}
