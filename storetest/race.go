package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
)

func raceCases(g *group) {
	g.run("R1, S056/8 claimers race for 2,000 jobs with limit 7: each job once, never more than asked", claimers)
	g.run("R1/of 8 that claim one job by its id, due or expired, one gets it", func(c *kase) {
		stores := []Store{c.Store, c.Reopen(c.T)}
		for round := range 40 {
			id := c.one(pacht.MaxCrashes(100))
			want := pacht.Token(1)
			if round%2 == 1 {
				c.claimID("silent", id)
				c.age(2 * pacht.DefaultTTL)
				want = 2
			}
			var won atomic.Int32
			c.together(8, func(i int) {
				job, ok, err := stores[i%2].ClaimID(c.ctx, fmt.Sprint("w", i), id)
				if err != nil {
					c.Errorf("claim by id: %v", err)
				}
				if ok {
					won.Add(1)
					if job.Token != want || job.LeaseOwner != fmt.Sprint("w", i) {
						c.Errorf("claimed %+v", job)
					}
				}
			})
			c.same("claimed", won.Load(), int32(1))
			c.same("token", c.job(id).Token, want)
		}
	})
	g.run("R1, R4, S014 to S020/1,000 expired leases raced by watcher, late holder and new claimers: one winner, one history row", expiredRace)
	g.run("R4, S035/a settle and a release of one lease at once: one closes it, the attempt is counted once", func(c *kase) {
		for range 60 {
			held := c.take("a")
			var settled, released pacht.Settled
			var byHand error
			c.together(3, func(i int) {
				switch i {
				case 0:
					settled = c.settle(held.Ref(), pacht.OutcomeFailed)
				case 1:
					released = c.settle(held.Ref(), pacht.OutcomeReleased)
				case 2:
					_, byHand = c.Store.Release(c.ctx, held.Ref(), act)
				}
			})
			// A release by hand and one by the holder have the same outcome: the holder's is
			// then answered as a repeat.
			winners := 0
			if settled.Err == nil {
				winners++
			}
			if released.Err == nil && !released.Repeated {
				winners++
			}
			if byHand == nil {
				winners++
			}
			ledger := c.ledger(held.ID)
			busy := errors.Is(settled.Err, pacht.ErrBusy) || errors.Is(released.Err, pacht.ErrBusy)
			if len(ledger) != 1 || winners != 1 && !busy {
				c.Errorf("winners %d, ledger %+v: %+v, %+v, %v", winners, ledger, settled, released, byHand)
				continue
			}
			want := 0
			if ledger[0].Outcome == pacht.OutcomeFailed {
				want = 1
			}
			c.same("attempt", c.job(held.ID).Attempt, want)
		}
	})
	g.run("S089, R9/a cancel and a settle at once: success is Completed, an error never goes back to Pending", func(c *kase) {
		for round := range 100 {
			outcome, want := pacht.OutcomeCompleted, pacht.Completed
			if round%2 == 1 {
				outcome, want = pacht.OutcomeFailed, pacht.Cancelled
			}
			held := c.take("a")
			var cancel error
			c.together(2, func(i int) {
				if i == 0 {
					c.settleBusy(held.Ref(), outcome)
					return
				}
				for {
					if _, cancel = c.Store.Cancel(c.ctx, held.ID, act); !errors.Is(cancel, pacht.ErrBusy) {
						return
					}
				}
			})
			if cancel != nil && (!errors.Is(cancel, pacht.ErrWrongStatus) || outcome == pacht.OutcomeFailed) {
				c.Errorf("cancel: %v", cancel)
			}
			c.same(fmt.Sprintf("status after %s and a cancel", outcome), c.job(held.ID).Status, want)
		}
	})
	g.run("S059/settles, renewals and passes over the same leases in different orders neither deadlock nor lose any", opposites)
	g.run("a retry by hand, a cancel and a resolve of one parked job at once: one is done", func(c *kase) {
		for range 30 {
			j := c.in(pacht.Stuck)
			var done atomic.Int32
			c.together(3, func(i int) {
				var err error
				switch i {
				case 0:
					err = c.Store.Retry(c.ctx, j.ID, act)
				case 1:
					_, err = c.Store.Cancel(c.ctx, j.ID, act)
				case 2:
					err = c.Store.Resolve(c.ctx, j.Ref(), pacht.Resolution{Status: pacht.Completed}, act)
				}
				switch {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, pacht.ErrWrongStatus) && !errors.Is(err, pacht.ErrLeaseLost) && !errors.Is(err, pacht.ErrBusy):
					c.Errorf("by hand: %v", err)
				}
			})
			// A retry may be followed by a cancel of the pending job, or a cancel by a retry.
			if n := done.Load(); n < 1 || n > 2 {
				c.Errorf("%d acts done, ledger %s", n, c.outcomes(j.ID))
			}
		}
	})
}

// settleBusy settles, asking again while the row is locked.
func (c *kase) settleBusy(ref pacht.Ref, outcome pacht.Outcome) pacht.Settled {
	for {
		got := c.settle(ref, outcome)
		if !errors.Is(got.Err, pacht.ErrBusy) {
			return got
		}
	}
}

func claimers(c *kase) {
	const jobs, workers, limit = 2000, 8, 7
	c.many(jobs)
	stores := []Store{c.Store, c.Reopen(c.T)}
	var mu sync.Mutex
	holders := map[pacht.ID]string{}
	c.together(workers, func(i int) {
		owner := fmt.Sprint("w", i)
		for empty := 0; empty < 3; {
			got, err := stores[i%2].Claim(c.ctx, c.request(owner, limit))
			if err != nil {
				c.Errorf("claim: %v", err)
				return
			}
			if len(got.Jobs) > limit {
				c.Errorf("%d jobs for a limit of %d", len(got.Jobs), limit)
			}
			if len(got.Jobs) == 0 {
				empty++ // short does not mean empty; three times does, when nobody puts back
			}
			mu.Lock()
			for _, j := range got.Jobs {
				if other, taken := holders[j.ID]; taken {
					c.Errorf("job %d was given to %s and %s", j.ID, other, owner)
				}
				if j.Token != 1 || j.LeaseOwner != owner {
					c.Errorf("%s got %+v", owner, j)
				}
				holders[j.ID] = owner
			}
			mu.Unlock()
		}
	})
	c.same("jobs given out", len(holders), jobs)
	c.same("rows", c.query("SELECT count(*), min(token), max(token), min(attempt), max(attempt) FROM {leases} WHERE status = 'Processing'")[0], fmt.Sprintf("%d|1|1|1|1", jobs))
}

func opposites(c *kase) {
	const n = 120
	c.many(n)
	held := c.claim("a", n)
	other := c.Reopen(c.T)
	var forward, backward []pacht.Ref
	for i := range held {
		forward = append(forward, held[i].Ref())
		backward = append(backward, held[n-1-i].Ref())
	}
	c.together(5, func(i int) {
		for range 5 {
			var err error
			switch i {
			case 0:
				_, err = c.Store.Renew(c.ctx, forward)
			case 1:
				_, err = other.Renew(c.ctx, backward)
			case 2:
				_, err = other.Expire(c.ctx, pacht.ExpireRequest{By: "w", Limit: n, Period: time.Minute, Force: true})
			default:
				var batch []pacht.Settlement
				refs := forward
				if i == 4 {
					refs = backward
				}
				for _, ref := range refs {
					batch = append(batch, pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted})
				}
				var answers []pacht.Settled
				answers, err = c.Store.Settle(c.ctx, batch)
				for _, a := range answers {
					if a.Err != nil && !errors.Is(a.Err, pacht.ErrBusy) {
						c.Errorf("settle: %v", a.Err)
					}
				}
			}
			if err != nil {
				c.Errorf("actor %d: %v", i, err)
			}
		}
	})
	for _, ref := range forward {
		c.settleBusy(ref, pacht.OutcomeCompleted)
	}
	c.same("history", c.query("SELECT count(*), count(DISTINCT job_id) FROM {attempts} WHERE outcome = 'Completed'")[0], fmt.Sprintf("%d|%d", n, n))
	c.same("leases", c.query("SELECT count(*) FROM {leases}")[0], "0")
}
