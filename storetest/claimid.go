package storetest

import (
	"time"

	"github.com/pacht-queue/pacht"
)

func claimIDCases(g *group) {
	g.run("R1/claim by id takes a due job, once", func(c *kase) {
		id := c.one()
		job := c.claimID("a", id)
		c.same("lease", [4]any{job.Status, job.Token, job.Attempt, job.LeaseOwner}, [4]any{pacht.Processing, pacht.Token(1), 1, "a"})
		c.same("args", string(job.Args), `{"n":0}`)
		c.near("lease_until", job.LeaseUntil, c.now().Add(pacht.DefaultTTL-5*time.Second))
		c.refuseID("b", id)
		c.refuseID("a", id)
	})
	g.run("R1/claim by id of an expired lease closes and takes it in one statement", func(c *kase) {
		id := c.one()
		first := c.claimID("a", id)
		c.age(2 * pacht.DefaultTTL)
		second := c.claimID("b", id)
		c.same("lease", [5]any{second.Status, second.Token, second.Attempt, second.Crashes, second.LeaseOwner},
			[5]any{pacht.Processing, pacht.Token(2), 2, 1, "b"})
		ledger := c.ledger(id)
		if len(ledger) != 1 {
			c.Fatalf("ledger: %+v", ledger)
		}
		a := ledger[0]
		c.same("ledger row", [6]any{a.Token, a.Attempt, a.Owner, a.Outcome, a.NextStatus, a.Late},
			[6]any{first.Token, 1, "a", pacht.OutcomeExpired, pacht.Processing, false})
		if a.EndedAt.Before(a.ClaimedAt) || !a.NextRunAt.IsZero() {
			c.Errorf("ledger row: %+v", a)
		}
		if got := c.settle(first.Ref(), pacht.OutcomeCompleted); got.Err == nil {
			c.Error("the first holder could still settle")
		}
	})
	g.run("R1/claim by id takes an expired lease also for the same owner string", func(c *kase) {
		id := c.one()
		c.claimID("a", id)
		c.age(2 * pacht.DefaultTTL)
		c.same("token", c.claimID("a", id).Token, pacht.Token(2))
		c.same("ledger", c.outcomes(id), "1 Expired Processing")
	})
	g.run("R1/claim by id takes nothing that is for later, parked, finished or absent", func(c *kase) {
		c.refuseID("b", c.one(pacht.RunIn(time.Hour)))
		for _, outcome := range []pacht.Outcome{pacht.OutcomeUnknown, pacht.OutcomeCompleted, pacht.OutcomeCancelled} {
			held := c.take("a")
			c.close(held.Ref(), outcome)
			c.refuseID("b", held.ID)
		}
		c.refuseID("b", 1<<40)
		c.refuseID("b", 0)
		c.refuseID("b", -1)
	})
	for name, opts := range map[string][]pacht.Option{
		"R9/under hold":                    {pacht.OnCrash(pacht.CrashHold)},
		"R9, S028, S030/at max_attempts":   {pacht.MaxAttempts(1)},
		"R9/when the crash cap is reached": {pacht.MaxCrashes(1)},
	} {
		g.run(name+" an expired lease is left to the watcher, which parks it", func(c *kase) {
			held := c.take("a", opts...)
			c.age(2 * pacht.DefaultTTL)
			c.refuseID("b", held.ID)
			c.watch()
			c.same("status", c.job(held.ID).Status, pacht.Stuck)
			c.refuseID("b", held.ID)
			c.same("ledger", c.outcomes(held.ID), "1 Expired Stuck")
		})
	}
	g.run("R9/an expired lease with a cancel requested is left to the watcher, which cancels it", func(c *kase) {
		held := c.take("a")
		c.requestCancel(held.ID)
		c.age(2 * pacht.DefaultTTL)
		c.refuseID("b", held.ID)
		c.watch()
		c.same("ledger", c.outcomes(held.ID), "1 Expired Cancelled")
	})
	g.run("R9, S028/claims by id of silent deaths stop at the crash cap and never pass max_attempts", func(c *kase) {
		id := c.one(pacht.MaxCrashes(3), pacht.MaxAttempts(10))
		for want := 1; want <= 3; want++ {
			job := c.claimID("a", id)
			c.same("attempt, crashes", [2]int{job.Attempt, job.Crashes}, [2]int{want, want - 1})
			c.age(2 * pacht.DefaultTTL)
		}
		c.refuseID("a", id)
		capped := c.one(pacht.MaxCrashes(10), pacht.MaxAttempts(2))
		c.claimID("a", capped)
		c.age(2 * pacht.DefaultTTL)
		c.same("attempt", c.claimID("a", capped).Attempt, 2)
		c.age(2 * pacht.DefaultTTL)
		c.refuseID("a", capped)
	})
}

// requestCancel asks a running job to stop.
func (c *kase) requestCancel(id pacht.ID) {
	c.Helper()
	status, err := c.Store.Cancel(c.ctx, id, pacht.Act{By: "op", Reason: "not needed"})
	c.must(err)
	c.same("answer to a cancel of a running job", status, pacht.Processing)
}
