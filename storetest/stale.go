package storetest

import (
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// usurped is a job whose lease a let run out, and which b holds now.
func (c *kase) usurped() (stale, held pacht.JobInfo) {
	c.Helper()
	stale = c.take("a")
	c.age(2 * pacht.DefaultTTL)
	held = c.claimID("b", stale.ID)
	return stale, held
}

func staleCases(g *group) {
	outcomes := []pacht.Outcome{pacht.OutcomeCompleted, pacht.OutcomeFailed, pacht.OutcomeReleased, pacht.OutcomeSnoozed, pacht.OutcomeCancelled, pacht.OutcomeUnknown}
	for _, outcome := range outcomes {
		g.run(fmt.Sprintf("R3, S014, S018, S019/a stale token changes nothing and is kept as a report: settle %s", outcome), func(c *kase) {
			stale, held := c.usurped()
			before := c.lease(held.ID)
			got := c.settle(stale.Ref(), outcome, failure("too late"))
			c.heldByB(got.Err, stale, held)
			c.same("status in a refused answer", got.Status, pacht.Status(""))
			c.same("the row of the new holder", c.lease(held.ID), before)
			c.same("ledger", c.outcomes(held.ID), "1 Expired Processing")
			reports, err := c.Store.Reports(c.ctx, held.ID)
			c.must(err)
			if len(reports) != 1 {
				c.Fatalf("reports: %+v", reports)
			}
			r := reports[0]
			c.same("report", fmt.Sprint(r.Job, r.Token, r.Owner, r.Outcome, r.Error), fmt.Sprint(held.ID, 1, "a", outcome, "too late"))
			// Asked again because the answer was lost: one report.
			c.heldByB(c.settle(stale.Ref(), outcome, failure("too late")).Err, stale, held)
			c.same("reports", c.query("SELECT count(*) FROM {reports}")[0], "1")
			c.close(held.Ref(), pacht.OutcomeCompleted)
		})
		g.run(fmt.Sprintf("R3/a stale token breaks the transaction: settle %s", outcome), func(c *kase) {
			stale, held := c.usurped()
			before := c.lease(held.ID)
			c.brokenTx(func(tx Txn) error {
				err := tx.SettleTx(c.ctx, pacht.Settlement{Ref: stale.Ref(), Outcome: outcome})
				c.heldByB(err, stale, held)
				return err
			})
			c.same("the row of the new holder", c.lease(held.ID), before)
		})
	}
	g.run("R3, R7/a stale token changes nothing: renew", func(c *kase) {
		stale, held := c.usurped()
		before := c.lease(held.ID)
		got := c.renew(stale.Ref())
		c.same("state", got.State, pacht.RenewLost)
		c.same("the row of the new holder", c.lease(held.ID), before)
	})
	g.run("R3/a stale token changes nothing: step", func(c *kase) {
		stale, held := c.usurped()
		before := c.lease(held.ID)
		c.heldByB(c.Store.SetStep(c.ctx, stale.Ref(), "charged", nil), stale, held)
		c.same("the row of the new holder", c.lease(held.ID), before)
		c.same("steps", c.query("SELECT count(*) FROM {steps}")[0], "0")
	})
	g.run("R3/a stale token breaks the transaction: step", func(c *kase) {
		stale, held := c.usurped()
		before := c.lease(held.ID)
		c.brokenTx(func(tx Txn) error {
			err := tx.SetStepTx(c.ctx, stale.Ref(), "charged", nil)
			c.heldByB(err, stale, held)
			return err
		})
		c.same("the row of the new holder", c.lease(held.ID), before)
		c.same("steps", c.query("SELECT count(*) FROM {steps}")[0], "0")
	})
	g.run("R3/a stale token changes nothing: release by hand", func(c *kase) {
		stale, held := c.usurped()
		before := c.lease(held.ID)
		_, err := c.Store.Release(c.ctx, stale.Ref(), act)
		c.heldByB(err, stale, held)
		c.same("the row of the new holder", c.lease(held.ID), before)
	})
	g.run("R3/a stale token changes nothing: resolve", func(c *kase) {
		held := c.take("a")
		c.close(held.Ref(), pacht.OutcomeUnknown)
		before := c.lease(held.ID)
		stale := pacht.Ref{Job: held.ID, Token: 0}
		lost := c.lost(c.Store.Resolve(c.ctx, stale, pacht.Resolution{Status: pacht.Completed}, act), stale)
		c.same("what the error says", [2]any{lost.Status, lost.Token}, [2]any{pacht.Stuck, pacht.Token(1)})
		c.same("the row", c.lease(held.ID), before)
		c.same("ledger", c.outcomes(held.ID), "1 Unknown Stuck")
	})
	g.run("R3/a token from the future changes nothing", func(c *kase) {
		held := c.take("a")
		before := c.lease(held.ID)
		ahead := pacht.Ref{Job: held.ID, Token: held.Token + 1}
		c.lost(c.settle(ahead, pacht.OutcomeCompleted).Err, ahead)
		c.same("renewal", c.renew(ahead).State, pacht.RenewLost)
		c.lost(c.Store.SetStep(c.ctx, ahead, "x", nil), ahead)
		c.same("the row", c.lease(held.ID), before)
	})
	g.run("S021/a job deleted by hand while it runs is a lost lease of a job that is gone", func(c *kase) {
		held := c.take("a")
		for _, table := range []string{"leases", "jobs"} {
			c.sql("DELETE FROM {%s} WHERE job_id = %d", table, held.ID)
		}
		for _, outcome := range outcomes {
			lost := c.lost(c.settle(held.Ref(), outcome).Err, held.Ref())
			c.same("status", lost.Status, pacht.Status(""))
		}
		c.same("renewal", c.renew(held.Ref()).State, pacht.RenewLost)
		c.same("status", c.lost(c.Store.SetStep(c.ctx, held.Ref(), "x", nil), held.Ref()).Status, pacht.Status(""))
		c.brokenTx(func(tx Txn) error {
			err := tx.SettleTx(c.ctx, pacht.Settlement{Ref: held.Ref(), Outcome: pacht.OutcomeCompleted})
			c.same("status", c.lost(err, held.Ref()).Status, pacht.Status(""))
			return err
		})
	})
}

// act is a well-formed act by hand.
var act = pacht.Act{By: "op", Reason: "a test"}

// heldByB asserts that the error names the new holder, and how the old lease ended.
func (c *kase) heldByB(err error, stale, held pacht.JobInfo) {
	c.Helper()
	lost := c.lost(err, stale.Ref())
	c.same("what the error says", fmt.Sprint(lost.Status, lost.Token, lost.Owner, lost.Until.UTC().Truncate(time.Millisecond), lost.Outcome),
		fmt.Sprint(pacht.Processing, held.Token, "b", held.LeaseUntil.UTC().Truncate(time.Millisecond), pacht.OutcomeExpired))
}
