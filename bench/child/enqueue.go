package child

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacht-queue/pacht/bench/peer"
)

var errCannot = errors.New("the peer does not do that")

// callers is how many single inserts are under way at the same time.
const callers = 8

func (c *child) bulk(ctx context.Context) (int, error) {
	b, ok := c.session.(peer.BulkEnqueuer)
	if !ok {
		return 0, errCannot
	}
	return c.task.Jobs, b.EnqueueBulk(ctx, c.task.Jobs, c.task.Bytes)
}

// single inserts for a while.
func (c *child) single(ctx context.Context) (int, error) {
	e, ok := c.session.(peer.Enqueuer)
	if !ok {
		return 0, errCannot
	}
	var next atomic.Int64
	until := time.Now().Add(time.Duration(c.task.Seconds * float64(time.Second)))
	all, ctx := errgroup.WithContext(ctx)
	for range callers {
		all.Go(func() error {
			for time.Now().Before(until) {
				n := int(next.Add(1)) - 1
				if err := e.Enqueue(ctx, peer.NewPayload(n, c.task.Bytes)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := all.Wait()
	return int(next.Load()), err
}

// feed inserts one job at a time, at a steady pace, and writes down when each was committed.
func (c *child) feed(ctx context.Context) (int, error) {
	e, ok := c.session.(peer.Enqueuer)
	if !ok {
		return 0, errCannot
	}
	times := make(Times, c.task.Jobs)
	every := time.Duration(c.task.Every * float64(time.Second))
	due := time.Now()
	for i := range times {
		due = due.Add(every)
		time.Sleep(time.Until(due))
		if err := e.Enqueue(ctx, peer.NewPayload(i, c.task.Bytes)); err != nil {
			return i, err
		}
		times[i] = time.Now().UnixNano()
	}
	return len(times), times.write(c.task.Out)
}
