package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// chaos disturbs the workers. A kill or a pause counts only if the database proves it: the
// worker held a lease, and the ledger says that this lease ended as Expired; after a pause
// also that the woken worker's late outcome was refused.
type chaos struct {
	*run
	chance chance

	unfinished    atomic.Int64
	finished      atomic.Bool
	kills, pauses int // read by others only after finished
}

// chance is what clock.Seeded gives.
type chance interface {
	IntN(n int) int
	Perm(n int) []int
}

// patience is how long to wait for what the lease promises: its end, and a pass of a watcher.
const patience = 3*ttl + 4*time.Second

func (c *chaos) setUnfinished(n int64) { c.unfinished.Store(n) }
func (c *chaos) over() bool            { return c.finished.Load() }

// disturb kills and pauses in an order that the seed decides, until both have happened often
// enough; then lets the provider's last answers go, and goes on while there is much to do.
func (c *chaos) disturb(ctx context.Context) error {
	c.unfinished.Store(math.MaxInt64)
	released := false
	for {
		kill, more := c.choose()
		if !more && !released {
			if err := c.provider.Release(ctx); err != nil {
				return err
			}
			released = true
		}
		if !more && c.unfinished.Load() < int64(c.cfg.Payments/4+reserve) {
			c.finished.Store(true)
			return nil
		}
		if err := clock.Sleep(ctx, time.Duration(300+c.chance.IntN(700))*time.Millisecond); err != nil {
			return err
		}
		act := c.pause
		if kill {
			act = c.kill
		}
		if err := act(ctx); err != nil {
			return err
		}
	}
}

// choose says whether to kill or to pause next, and whether either is still owed.
func (c *chaos) choose() (kill, more bool) {
	kills, pauses := max(minKills-c.kills, 0), max(minPauses-c.pauses, 0)
	if kills+pauses == 0 {
		return c.chance.IntN(2) == 0, false
	}
	return c.chance.IntN(kills+pauses) < kills, true
}

// kill ends a worker with SIGKILL while it holds leases, starts another, and waits until the
// ledger shows that a lease of the dead one ran out.
func (c *chaos) kill(ctx context.Context) error {
	victim, err := c.victim(ctx)
	if err != nil {
		return err
	}
	if err := victim.kill(); err != nil {
		return err
	}
	held, err := c.held(ctx, victim)
	if err != nil {
		return err
	}
	next, err := c.fleet.startWorker(ctx)
	if err != nil {
		return err
	}
	c.screen.event("killed %s (pid %d, SIGKILL) with %s; started %s", victim.name, victim.pid(), jobs(len(held)), next.name)
	expired, err := c.await(ctx, held, c.expired)
	if err != nil {
		return err
	}
	if expired == 0 {
		c.screen.event("%s left nothing behind: not counted", victim.name)
		return nil
	}
	c.kills++
	return nil
}

// pause stops a worker with SIGSTOP while it holds leases, starts another, waits until the
// ledger shows that a lease of the stopped one ran out, wakes it, and waits until what it
// then writes is refused.
func (c *chaos) pause(ctx context.Context) (err error) {
	victim, held, err := c.stopHolder(ctx)
	if err != nil {
		return err
	}
	stopped := clock.Now()
	defer func() {
		if err != nil {
			_ = victim.thaw() // the first error is the one to tell; a stopped one cannot end in order
		}
	}()
	next, err := c.fleet.startWorker(ctx)
	if err != nil {
		return err
	}
	c.screen.event("stopped %s (pid %d, SIGSTOP) with %s; started %s", victim.name, victim.pid(), jobs(len(held)), next.name)
	expired, err := c.await(ctx, held, c.expired)
	if err != nil {
		return err
	}
	// Give the others a moment to take its jobs and finish them behind its back.
	if err := clock.Sleep(ctx, time.Duration(c.chance.IntN(700))*time.Millisecond); err != nil {
		return err
	}
	if err := victim.thaw(); err != nil {
		return err
	}
	asleep := stopped.Elapsed().Round(100 * time.Millisecond)
	refused, err := c.await(ctx, held, c.refused)
	if err != nil {
		return err
	}
	if expired == 0 || refused == 0 {
		c.screen.event("woke %s after %s (SIGCONT): it had nothing to write late, not counted", victim.name, asleep)
		return nil
	}
	c.screen.event("woke %s after %s (SIGCONT): it came too late with %s and was refused", victim.name, asleep, jobs(refused))
	c.pauses++
	return nil
}

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
	return c.place.store.Jobs(ctx, pacht.Filter{Status: pacht.Processing, Owner: worker.said.Owner, Limit: 1000})
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
	attempts, err := c.place.store.Attempts(ctx, job.ID)
	for _, a := range attempts {
		if a.Token == job.Token {
			return a.Outcome == pacht.OutcomeExpired, err
		}
	}
	return false, err
}

// refused: the holder of this lease reported an outcome after it had been closed.
func (c *chaos) refused(ctx context.Context, job pacht.JobInfo) (bool, error) {
	reports, err := c.place.store.Reports(ctx, job.ID)
	for _, r := range reports {
		if r.Token == job.Token {
			return true, err
		}
	}
	return false, err
}

func jobs(n int) string {
	if n == 1 {
		return "1 job in hand"
	}
	return fmt.Sprintf("%d jobs in hand", n)
}
