package demo

import (
	"context"
	"errors"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// stopHolder stops a worker that holds leases, and not inside a write transaction that keeps
// the whole file locked: then it is woken at once and tried again.
func (c *chaos) stopHolder(ctx context.Context) (*child, []pacht.JobInfo, error) {
	for {
		victim, err := c.victim(ctx)
		if err != nil {
			return nil, nil, err
		}
		if err := victim.freeze(); err != nil {
			return nil, nil, err
		}
		var held []pacht.JobInfo
		writable := c.place.writable(ctx)
		if writable {
			held, err = c.held(ctx, victim)
		}
		if err == nil && len(held) > 0 {
			return victim, held, nil
		}
		if thawed := victim.thaw(); err != nil || thawed != nil {
			return nil, nil, errors.Join(err, thawed)
		}
		if !writable {
			c.screen.event("stopped %s inside a write transaction, which blocks the whole SQLite file: woken at once", victim.name)
		}
		if err := clock.Sleep(ctx, time.Duration(10+c.chance.IntN(50))*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
}

// victim is a running worker that holds a lease now; it waits for one.
func (c *chaos) victim(ctx context.Context) (*child, error) {
	for {
		alive := c.fleet.running()
		for _, i := range c.chance.Perm(len(alive)) {
			held, err := c.held(ctx, alive[i])
			if err != nil {
				return nil, err
			}
			if len(held) > 0 {
				return alive[i], nil
			}
		}
		if err := clock.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// held lists the leases of a worker, by the database.
func (c *chaos) held(ctx context.Context, worker *child) ([]pacht.JobInfo, error) {
	return c.place.Store.Jobs(ctx, pacht.Filter{Status: pacht.Processing, Owner: worker.said.Owner, Limit: 1000})
}

// await counts the leases of which something has become true: all of them, or as many as have
// a second after the first one; 0 if it does not happen in time.
func (c *chaos) await(ctx context.Context, held []pacht.JobInfo, has func(context.Context, pacht.JobInfo) (bool, error)) (n int, err error) {
	deadline := patience
	for start := clock.Now(); len(held) > 0; {
		n = 0
		for _, job := range held {
			yes, err := has(ctx, job)
			if err != nil {
				return 0, err
			}
			if yes {
				n++
			}
		}
		passed := start.Elapsed()
		if n > 0 && deadline == patience {
			deadline = passed + time.Second
		}
		if n == len(held) || passed > deadline {
			break
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// expired: the ledger says that nobody closed this lease before its end.
func (c *chaos) expired(ctx context.Context, job pacht.JobInfo) (bool, error) {
	attempts, err := c.place.Store.Attempts(ctx, job.ID)
	for _, a := range attempts {
		if a.Token == job.Token {
			return a.Outcome == pacht.OutcomeExpired, err
		}
	}
	return false, err
}

// refused: the holder of this lease reported an outcome after it had been closed.
func (c *chaos) refused(ctx context.Context, job pacht.JobInfo) (bool, error) {
	reports, err := c.place.Store.Reports(ctx, job.ID)
	for _, r := range reports {
		if r.Token == job.Token {
			return true, err
		}
	}
	return false, err
}
