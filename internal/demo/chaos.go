package demo

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

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

// enough is when a slow machine is left in peace, so that it gets done in a minute.
const enough = pace + 7*time.Second

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
		if !more && (c.unfinished.Load() < int64(c.cfg.Payments/4+reserve) || c.start.Elapsed() > enough) {
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
	next, err := c.replace(ctx)
	if err != nil {
		return err
	}
	c.screen.event("killed %s (pid %d, SIGKILL) with %s%s", victim.name, victim.pid(), jobs(len(held)), next)
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
	next, err := c.replace(ctx)
	if err != nil {
		return err
	}
	c.screen.event("stopped %s (pid %d, SIGSTOP) with %s%s", victim.name, victim.pid(), jobs(len(held)), next)
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

// replace starts another worker, and says so, unless those that were woken have made the fleet
// large enough.
func (c *chaos) replace(ctx context.Context) (said string, err error) {
	if len(c.fleet.running()) >= workers+minPauses {
		return "", nil
	}
	next, err := c.fleet.startWorker(ctx)
	if err != nil {
		return "", err
	}
	return "; started " + next.name, nil
}

func jobs(n int) string {
	if n == 1 {
		return "1 job in hand"
	}
	return fmt.Sprintf("%d jobs in hand", n)
}
