package kill

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// feeder enqueues jobs as they are done, so that there is always something to do and never much:
// a job that comes back is soon done again by somebody else.
type feeder struct {
	over  chan struct{}
	done  sync.WaitGroup
	once  sync.Once
	store pacht.Store
	// Of the goroutine alone, until it has ended:
	jobs   int
	unsure []pacht.NewJob // stored or not: to be enqueued once more, as they are
}

// feed keeps about so many jobs due, so many in all.
func feed(t *testing.T, store pacht.Store, due, all int) *feeder {
	f := &feeder{over: make(chan struct{}), store: store}
	f.done.Go(func() { f.run(due, all) })
	t.Cleanup(func() { f.stop() })
	return f
}

// stop ends it, and answers how many jobs there are.
func (f *feeder) stop() int {
	f.once.Do(func() { close(f.over) })
	f.done.Wait()
	return f.jobs
}

// wait waits until all are enqueued.
func (f *feeder) wait() int {
	f.done.Wait()
	return f.jobs
}

func (f *feeder) run(due, all int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for f.jobs < all || f.unsure != nil {
		f.more(due, all)
		<-tick.C
		select {
		case <-f.over:
			all = 0 // and what is unsure is made sure
		default:
		}
	}
}

// more enqueues what is missing. An error means that the server is down, or a table away, for a
// moment.
func (f *feeder) more(due, all int) {
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
		f.unsure = f.next(min(due, all-f.jobs))
	}
	if answers, err := f.store.Enqueue(ctx, f.unsure); err == nil {
		f.jobs += len(answers)
		f.unsure = nil
	}
}

func (f *feeder) next(n int) []pacht.NewJob {
	if n <= 0 {
		return nil
	}
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.New(lab.Work{N: f.jobs + i}, pacht.TTL(ttl), pacht.MaxAttempts(pacht.MaxMaxAttempts), pacht.MaxCrashes(pacht.MaxMaxCrashes),
			pacht.IdempotencyKey(fmt.Sprint("job ", f.jobs+i))) // an unanswered enqueue is repeated, and stores nothing twice (R11)
	}
	return jobs
}
