package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

func pruneCases(g *group) {
	g.run("prune never takes an unfinished job, whatever its age", func(c *kase) {
		for _, status := range []pacht.Status{pacht.Pending, pacht.Processing, pacht.Stuck} {
			c.in(status)
		}
		c.one(pacht.RunIn(24 * time.Hour))
		c.age(400 * 24 * time.Hour)
		before := c.query("SELECT count(*) FROM {jobs}")[0]
		for _, status := range []pacht.Status{pacht.Completed, pacht.Dead, pacht.Cancelled} {
			c.prune(status, 0)
		}
		c.same("jobs", c.query("SELECT count(*) FROM {jobs}")[0], before)
		for _, status := range []pacht.Status{pacht.Pending, pacht.Processing, pacht.Stuck, ""} {
			var invalid *pacht.InvalidError
			if _, err := c.Store.Prune(c.ctx, pacht.PruneRequest{Status: status, Limit: 1}); !errors.As(err, &invalid) {
				c.Errorf("prune of %q: %v", status, err)
			}
		}
	})
	g.run("prune takes finished jobs of one status by the time they finished, with all their history", pruneByAge)
	g.run("prune is bounded, and goes on where it stopped", func(c *kase) {
		c.many(25)
		for _, j := range c.claim("a", 25) {
			c.close(j.Ref(), pacht.OutcomeCompleted)
		}
		for _, want := range []int{10, 10, 5, 0} {
			n, err := c.Store.Prune(c.ctx, pacht.PruneRequest{Status: pacht.Completed, Limit: 10})
			c.must(err)
			c.same("pruned", n, want)
		}
	})
	g.run("prune leaves alone a job that was Dead and is redriven", func(c *kase) {
		j := c.in(pacht.Dead)
		c.must(c.Store.Retry(c.ctx, j.ID, act))
		c.age(time.Hour)
		c.prune(pacht.Dead, 0)
		held := c.claimID("a", j.ID)
		c.prune(pacht.Dead, 0)
		c.close(held.Ref(), pacht.OutcomeCompleted)
		c.prune(pacht.Dead, 0)
		c.same("ledger", c.outcomes(j.ID), "1 Failed Dead, 2 Completed Completed")
		c.prune(pacht.Completed, 1)
	})
	g.run("R2/a redrive and a prune of one job at once: it is whole, or it is gone", func(c *kase) {
		for range 40 {
			j := c.in(pacht.Dead)
			var retry, prune error
			var pruned int
			c.together(2, func(i int) {
				if i == 0 {
					retry = c.Store.Retry(c.ctx, j.ID, act)
					return
				}
				pruned, prune = c.Store.Prune(c.ctx, pacht.PruneRequest{Status: pacht.Dead, Limit: 1})
			})
			c.must(prune)
			switch {
			case retry == nil && pruned == 0:
				c.same("token goes on", c.claimID("a", j.ID).Token, j.Token+1)
			case pruned == 1 && errors.Is(retry, pacht.ErrNotFound):
			default:
				c.Errorf("retry: %v, pruned %d", retry, pruned)
			}
		}
	})
}

func pruneByAge(c *kase) {
	held := c.take("a")
	c.must(c.Store.SetStep(c.ctx, held.Ref(), "charged", json.RawMessage(`1`)))
	c.close(held.Ref(), pacht.OutcomeFailed)
	c.settle(held.Ref(), pacht.OutcomeCompleted) // too late: a report
	c.requestCancel(c.claimID("a", held.ID).ID)
	c.close(pacht.Ref{Job: held.ID, Token: 2}, pacht.OutcomeCompleted)
	dead, cancelled := c.in(pacht.Dead), c.in(pacht.Cancelled)
	c.age(2 * time.Hour)
	young := c.in(pacht.Completed)

	n, err := c.Store.Prune(c.ctx, pacht.PruneRequest{Status: pacht.Completed, OlderThan: time.Hour, Limit: 100})
	c.must(err)
	c.same("pruned", n, 1)
	if _, err := c.Store.Job(c.ctx, held.ID); !errors.Is(err, pacht.ErrNotFound) {
		c.Errorf("the pruned job: %v", err)
	}
	for _, table := range []string{"jobs", "attempts", "steps", "reports"} {
		c.same(table, c.query("SELECT count(*) FROM %s WHERE job_id = %d", c.Table(table), held.ID)[0], "0")
	}
	audit, err := c.Store.Audit(c.ctx, held.ID)
	c.must(err)
	c.same("audit outlives its job", len(audit), 1)
	for _, j := range []pacht.JobInfo{dead, cancelled, young} {
		c.same("status", c.job(j.ID).Status, j.Status)
	}
	// A late word about a job that is gone harms nobody.
	c.same("status", fmt.Sprint(c.lost(c.settle(pacht.Ref{Job: held.ID, Token: 1}, pacht.OutcomeFailed).Err, pacht.Ref{Job: held.ID, Token: 1}).Status), "")
}
