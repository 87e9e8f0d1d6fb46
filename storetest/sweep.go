package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
)

// sweep asks for pages until a look is at its end, and answers how many rows went.
func (c *kase) sweep(target pacht.Target, older time.Duration) (removed int) {
	c.Helper()
	for {
		s, err := c.Store.Sweep(c.ctx, pacht.SweepRequest{By: "m", Target: target, OlderThan: older, Limit: 100, Period: time.Second, Force: true})
		c.must(err)
		if removed += s.Removed; !s.More {
			return removed
		}
	}
}

func (c *kase) sweepOnce(limit int) (pacht.Swept, error) {
	return c.Store.Sweep(c.ctx, pacht.SweepRequest{By: "m", Target: pacht.SweepCompleted, Limit: limit, Period: time.Minute})
}

func (c *kase) completed(n int) {
	c.Helper()
	c.many(n)
	for _, j := range c.claim("a", n) {
		c.close(j.Ref(), pacht.OutcomeCompleted)
	}
}

func sweepCases(g *group) {
	g.run("no sweep takes an unfinished job, whatever its age", func(c *kase) {
		for _, status := range []pacht.Status{pacht.Pending, pacht.Processing, pacht.Stuck} {
			c.in(status)
		}
		c.one(pacht.RunIn(24 * time.Hour))
		redriven := c.in(pacht.Dead)
		c.must(c.Store.Retry(c.ctx, redriven.ID, act))
		c.age(400 * 24 * time.Hour)
		for _, target := range pacht.Targets {
			c.same(string(target), c.sweep(target, 0), 0)
		}
		c.same("jobs", c.query("SELECT count(*) FROM {jobs}")[0], "5")
	})
	g.run("a request out of bounds is refused", func(c *kase) {
		good := pacht.SweepRequest{By: "m", Target: pacht.SweepDead, Limit: 1, Period: time.Second}
		for _, change := range []func(*pacht.SweepRequest){
			func(r *pacht.SweepRequest) { r.Target = "Pending" },
			func(r *pacht.SweepRequest) { r.By = "" },
			func(r *pacht.SweepRequest) { r.Limit = 0 },
			func(r *pacht.SweepRequest) { r.OlderThan = -1 },
			func(r *pacht.SweepRequest) { r.Period = 0 },
		} {
			req := good
			change(&req)
			var invalid *pacht.InvalidError
			if _, err := c.Store.Sweep(c.ctx, req); !errors.As(err, &invalid) {
				c.Errorf("%+v: %v", req, err)
			}
		}
	})
	g.run("R2/each target goes by the time it finished, with all its history, and nothing else goes", sweepTargets)
	g.run("R2/a job that was redriven is kept by its last ending, with the endings before it", func(c *kase) {
		j := c.in(pacht.Dead)
		c.age(2 * time.Hour)
		c.must(c.Store.Retry(c.ctx, j.ID, act))
		c.close(c.claimID("a", j.ID).Ref(), pacht.OutcomeCompleted)
		c.same("dead", c.sweep(pacht.SweepDead, time.Hour), 0)
		c.same("completed", c.sweep(pacht.SweepCompleted, time.Hour), 0)
		c.same("ledger", c.outcomes(j.ID), "1 Failed Dead, 2 Completed Completed")
		c.age(2 * time.Hour)
		c.same("dead", c.sweep(pacht.SweepDead, time.Hour), 0)
		c.same("completed", c.sweep(pacht.SweepCompleted, time.Hour), 1)
	})
	g.run("a look goes page by page, and the next one is due after the period", func(c *kase) {
		c.completed(25)
		for _, want := range []pacht.Swept{{Turn: true, Removed: 10, More: true}, {Turn: true, Removed: 10, More: true}, {Turn: true, Removed: 5}, {}} {
			got, err := c.sweepOnce(10)
			c.must(err)
			c.same("page", got, want)
		}
		c.age(time.Minute)
		got, err := c.sweepOnce(10)
		c.must(err)
		c.same("after the period", got, pacht.Swept{Turn: true})
		c.same("kept", c.query("SELECT removed, passed_by FROM {sweeps} WHERE target = 'Completed'")[0], "25|m")
	})
	g.run("a look ends at the first job that is too young, and the next one goes on there", func(c *kase) {
		c.completed(30)
		young := pacht.SweepRequest{By: "m", Target: pacht.SweepCompleted, OlderThan: time.Hour, Limit: 10, Period: time.Minute, Force: true}
		got, err := c.Store.Sweep(c.ctx, young)
		c.must(err)
		c.same("page of young ones", got, pacht.Swept{Turn: true})
		c.age(2 * time.Hour)
		c.same("when they are old", c.sweep(pacht.SweepCompleted, time.Hour), 30)
	})
	g.run("what became old behind a look is found by the next look from the start", func(c *kase) {
		late := c.take("a")
		c.completed(5)
		c.same("others", c.sweep(pacht.SweepCompleted, 0), 5)
		c.close(late.Ref(), pacht.OutcomeCompleted)
		c.age(time.Hour) // longer than looks from the start are kept apart
		c.same("the late one", c.sweep(pacht.SweepCompleted, 0), 1)
	})
	g.run("R2/a redrive and a sweep of one job at once: it is whole, or it is gone", func(c *kase) {
		for range 30 {
			j := c.in(pacht.Dead)
			var retry, sweep error
			var swept pacht.Swept
			c.together(2, func(i int) {
				if i == 0 {
					retry = c.Store.Retry(c.ctx, j.ID, act)
					return
				}
				swept, sweep = c.Store.Sweep(c.ctx, pacht.SweepRequest{By: "m", Target: pacht.SweepDead, Limit: 10, Period: time.Second, Force: true})
			})
			c.must(sweep)
			switch {
			case retry == nil && swept.Removed == 0:
				c.same("token goes on", c.claimID("a", j.ID).Token, j.Token+1)
			case swept.Removed == 1 && errors.Is(retry, pacht.ErrNotFound):
			default:
				c.Errorf("retry: %v, swept %+v", retry, swept)
			}
			c.age(time.Hour) // the next look begins at the start
		}
	})
	g.run("several that sweep at once make one pass at a time, and remove each job once", func(c *kase) {
		c.completed(300)
		stores := []Store{c.Store, c.Reopen(c.T), c.Reopen(c.T)}
		var removed atomic.Int64
		c.together(len(stores), func(i int) {
			// Calls that find another at it come back at once: a number of them is no measure.
			for tries := 0; removed.Load() < 300 && tries < 10000; tries++ {
				s, err := stores[i].Sweep(c.ctx, pacht.SweepRequest{By: fmt.Sprint("m", i), Target: pacht.SweepCompleted, Limit: 10, Period: time.Hour})
				if err != nil {
					c.Errorf("sweep: %v", err)
				}
				removed.Add(int64(s.Removed))
			}
		})
		c.same("left", c.query("SELECT count(*) FROM {jobs}")[0], "0")
		c.same("removed", removed.Load(), int64(300))
		c.same("counted", c.query("SELECT removed FROM {sweeps} WHERE target = 'Completed'")[0], "300")
	})
	g.alone("a pass that fails changes nothing and is not recorded", func(c *kase) {
		c.completed(5)
		bare := c.Table("steps")[strings.LastIndex(c.Table("steps"), ".")+1:]
		state := func() string {
			return c.query("SELECT count(*) FROM {jobs}")[0] + c.query("SELECT count(*) FROM {attempts}")[0] + strings.Join(c.query("SELECT target, passed_at, removed, next_at, after_id, looking FROM {sweeps}"), "\n")
		}
		before := state()
		c.sql("ALTER TABLE {steps} RENAME TO %s_away", bare)
		if s, err := c.sweepOnce(10); err == nil || s != (pacht.Swept{}) {
			c.Errorf("without the table of steps: %+v, %v", s, err)
		}
		c.same("state", state(), before)
		c.sql("ALTER TABLE %s_away RENAME TO %s", c.Table("steps"), bare)
		s, err := c.sweepOnce(10)
		c.must(err)
		c.same("again", s, pacht.Swept{Turn: true, Removed: 5})
	})
}

func sweepTargets(c *kase) {
	held := c.take("a")
	c.must(c.Store.SetStep(c.ctx, held.Ref(), "charged", json.RawMessage(`1`)))
	c.close(held.Ref(), pacht.OutcomeFailed)
	c.settle(held.Ref(), pacht.OutcomeCompleted) // too late: a report
	c.close(c.claimIDLater("a", held.ID).Ref(), pacht.OutcomeCompleted)
	dead, cancelled, pending := c.in(pacht.Dead), c.in(pacht.Cancelled), c.in(pacht.Pending)
	c.ask(c.keyed("old", 1))
	left := pacht.WorkerInfo{Owner: "left", BeatEvery: time.Second}
	c.must(c.Store.Beat(c.ctx, left))
	c.must(c.Store.Leave(c.ctx, "left"))
	left.Owner = "silent"
	c.must(c.Store.Beat(c.ctx, left))
	c.age(2 * time.Hour)
	young := map[pacht.Status]pacht.JobInfo{}
	for _, status := range []pacht.Status{pacht.Completed, pacht.Dead, pacht.Cancelled} {
		young[status] = c.in(status)
	}
	left.Owner = "alive"
	c.must(c.Store.Beat(c.ctx, left))

	for i, gone := range []struct {
		target pacht.Target
		job    pacht.ID
	}{{pacht.SweepDead, dead.ID}, {pacht.SweepCancelled, cancelled.ID}, {pacht.SweepCompleted, held.ID}} {
		c.same(string(gone.target), c.sweep(gone.target, time.Hour), 1)
		for _, table := range []string{"jobs", "attempts", "steps", "reports"} {
			c.same(table, c.query("SELECT count(*) FROM %s WHERE job_id = %d", c.Table(table), gone.job)[0], "0")
		}
		c.same("jobs left", c.query("SELECT count(*) FROM {jobs}")[0], fmt.Sprint(8-1-i))
	}
	for status, j := range young {
		c.same("young", c.job(j.ID).Status, status)
	}
	c.same("unfinished", c.job(pending.ID).Status, pacht.Pending)

	c.same("workers", c.sweep(pacht.SweepWorkers, time.Hour), 2)
	c.same("workers left", strings.Join(c.query("SELECT owner FROM {workers}"), ","), "alive")
	c.same("keys", c.sweep(pacht.SweepKeys, 0), 0)
	c.close(c.claimKeyed().Ref(), pacht.OutcomeCompleted)
	c.age(2 * pacht.DefaultKeyLife)
	c.same("keys", c.sweep(pacht.SweepKeys, 0), 1)
}

// claimIDLater claims a job that waits for its next attempt.
func (c *kase) claimIDLater(owner string, id pacht.ID) pacht.JobInfo {
	c.Helper()
	c.age(time.Hour)
	return c.claimID(owner, id)
}

// claimKeyed claims the one job with a key.
func (c *kase) claimKeyed() pacht.JobInfo {
	c.Helper()
	id := c.query("SELECT job_id FROM {keys}")[0]
	keyed, err := pacht.ParseID(id)
	c.must(err)
	return c.claimID("a", keyed)
}
