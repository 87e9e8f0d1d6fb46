package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
)

// crowd is callers who enqueue one job after the other, on a store of their own, and come back
// by themselves: a job with a key is tried until it is answered, one without a key once, unless
// it is certain that it was not stored.
type crowd struct {
	t     *testing.T
	store pacht.Enqueuer
	ended sync.WaitGroup
	stop  context.CancelFunc
	do    string // of jobs from now on

	mu      sync.Mutex
	next    int
	most    int
	answers map[int]pacht.ID // by number: what was answered
	unknown int              // without a key, and nobody can say whether they are stored
	again   int              // answered as stored before
	slowest time.Duration    // from the first try to the answer
}

// ttl is a lease of the crowd's jobs: longer than a promotion takes, shorter than a recovery of
// the long form.
const ttl = 3 * time.Second

func gather(t *testing.T, url string, callers int) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{t: t, store: lab.Open(t, url), stop: stop, answers: map[int]pacht.ID{}}
	for range callers {
		c.ended.Go(func() { c.call(ctx) })
	}
	t.Cleanup(func() { c.stop(); c.ended.Wait() })
	return c
}

// more lets the callers enqueue up to n jobs in all.
func (c *crowd) more(n int, do string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.do = n, do
}

// answered is how many have an answer or never will have one.
func (c *crowd) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.answers) + c.unknown
}

// done waits until all that may be enqueued is, and ends the callers if it is the last time.
func (c *crowd) done(patience time.Duration) {
	c.t.Helper()
	lab.Await(c.t, patience, "all is enqueued", func() bool { return c.answered() >= c.most })
}

func (c *crowd) take() (number int, do string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= c.most {
		return 0, "", false
	}
	c.next++
	return c.next - 1, c.do, true
}

func (c *crowd) call(ctx context.Context) {
	for ctx.Err() == nil {
		number, do, ok := c.take()
		if !ok {
			_ = clock.Sleep(ctx, 5*time.Millisecond) // its end shows in the loop
			continue
		}
		c.enqueue(ctx, number, do)
	}
}

// keyed says which jobs have a key.
func keyed(number int) bool { return number%4 != 0 }

func (c *crowd) enqueue(ctx context.Context, number int, do string) {
	job := pacht.New(lab.Work{N: number, Do: do}, pacht.TTL(ttl), pacht.MaxAttempts(pacht.MaxMaxAttempts), pacht.MaxCrashes(pacht.MaxMaxCrashes))
	if keyed(number) {
		job.Key = fmt.Sprint("number ", number)
	}
	for start := time.Now(); ctx.Err() == nil; {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		answers, err := c.store.Enqueue(call, []pacht.NewJob{job})
		cancel()
		c.mu.Lock()
		switch {
		case err == nil && answers[0].Err == nil:
			c.answers[number] = answers[0].ID
			if answers[0].Duplicate {
				c.again++
			}
			c.slowest = max(c.slowest, time.Since(start))
			c.mu.Unlock()
			return
		case err == nil:
			c.t.Errorf("job %d was refused: %v", number, answers[0].Err)
			c.mu.Unlock()
			return
		case job.Key == "" && (errors.Is(err, pacht.ErrUnknown) || errors.Is(err, context.DeadlineExceeded)):
			c.unknown++
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		_ = clock.Sleep(ctx, clock.Jitter(100*time.Millisecond)) // its end shows in the loop
	}
}
