package storetest

import (
	"time"

	"github.com/pacht-queue/pacht"
)

// renew extends one lease.
func (c *kase) renew(ref pacht.Ref) pacht.Renewed {
	c.Helper()
	got, err := c.Store.Renew(c.ctx, []pacht.Ref{ref})
	c.must(err)
	if len(got.Rows) != 1 || got.Rows[0].Ref != ref {
		c.Fatalf("answers %+v to one renewal of %s", got.Rows, ref)
	}
	return got.Rows[0]
}

func renewCases(g *group) {
	g.run("R6/a renewal extends to the database's now plus the job's own TTL, and not the token", func(c *kase) {
		short, long := c.take("a", pacht.TTL(10*time.Second)), c.take("a", pacht.TTL(time.Hour))
		c.age(5 * time.Second)
		got, err := c.Store.Renew(c.ctx, []pacht.Ref{long.Ref(), short.Ref()})
		c.must(err)
		c.near("now", got.Now, c.now().Add(-5*time.Second))
		for i, want := range []pacht.JobInfo{long, short} {
			row := got.Rows[i]
			c.same("answer", [3]any{row.Ref, row.State, row.CancelRequested}, [3]any{want.Ref(), pacht.RenewExtended, false})
			if d := row.LeaseUntil.Sub(got.Now) - want.TTL; d < -2*time.Millisecond || d > 2*time.Millisecond {
				c.Errorf("lease_until is off by %s", d)
			}
			j := c.job(want.ID)
			c.same("row", [4]any{j.Token, j.Attempt, j.Status, j.LeaseUntil.Equal(row.LeaseUntil)}, [4]any{want.Token, 1, pacht.Processing, true})
		}
	})
	g.run("R6, S002/a renewed lease outlives its first lease_until: only the stored time decides", func(c *kase) {
		held := c.take("a")
		for range 5 {
			c.age(pacht.DefaultTTL / 2)
			c.same("renewal", c.renew(held.Ref()).State, pacht.RenewExtended)
			c.same("expired", len(c.watch().Expired), 0)
		}
		c.same("attempt", c.job(held.ID).Attempt, 1)
		c.same("late", c.close(held.Ref(), pacht.OutcomeCompleted).Late, false)
	})
	g.run("R7, S011/a renewal after lease_until is refused though nobody has taken the lease", func(c *kase) {
		held := c.take("a")
		c.age(pacht.DefaultTTL + time.Second)
		before := c.lease(held.ID)
		c.same("renewal", c.renew(held.Ref()).State, pacht.RenewLost)
		c.same("the row", c.lease(held.ID), before)
		c.same("late", c.close(held.Ref(), pacht.OutcomeCompleted).Late, true)
	})
	g.run("R3/a renewal of what is settled, parked, released or absent is lost", func(c *kase) {
		for _, outcome := range []pacht.Outcome{pacht.OutcomeCompleted, pacht.OutcomeUnknown, pacht.OutcomeReleased} {
			held := c.take("a")
			c.close(held.Ref(), outcome)
			c.same("renewal", c.renew(held.Ref()).State, pacht.RenewLost)
		}
		c.same("renewal", c.renew(pacht.Ref{Job: 1 << 40, Token: 1}).State, pacht.RenewLost)
	})
	g.run("R12/renewals are answered row by row, in the order asked", func(c *kase) {
		c.many(3)
		held := c.claim("a", 3)
		refs := []pacht.Ref{held[2].Ref(), {Job: 1 << 40, Token: 1}, held[0].Ref(), {Job: held[1].ID, Token: 9}, held[1].Ref()}
		want := []pacht.RenewState{pacht.RenewExtended, pacht.RenewLost, pacht.RenewExtended, pacht.RenewLost, pacht.RenewExtended}
		got, err := c.Store.Renew(c.ctx, refs)
		c.must(err)
		if len(got.Rows) != len(refs) {
			c.Fatalf("%d answers to %d renewals", len(got.Rows), len(refs))
		}
		for i, row := range got.Rows {
			c.same("answer", [2]any{row.Ref, row.State}, [2]any{refs[i], want[i]})
		}
	})
	g.run("R9, S089/a requested cancel rides on the answer of the renewal", func(c *kase) {
		held := c.take("a")
		c.requestCancel(held.ID)
		got := c.renew(held.Ref())
		c.same("answer", [2]any{got.State, got.CancelRequested}, [2]any{pacht.RenewExtended, true})
		c.same("the request stands", c.renew(held.Ref()).CancelRequested, true)
		c.same("success is still Completed", c.close(held.Ref(), pacht.OutcomeCompleted).Status, pacht.Completed)
	})
	g.run("S003, S004/each lease runs out after the TTL of its own row", func(c *kase) {
		short, long := c.take("a", pacht.TTL(2*time.Second)), c.take("a", pacht.TTL(time.Hour))
		c.age(10 * time.Second)
		got := c.watch().Expired
		if len(got) != 1 || got[0].Ref != short.Ref() {
			c.Errorf("expired: %+v", got)
		}
		c.same("the long one", c.renew(long.Ref()).State, pacht.RenewExtended)
	})
}
