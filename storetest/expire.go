package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
)

func expireCases(g *group) {
	g.run("R6/a pass closes what is past lease_until and nothing else", expireOnlyExpired)
	g.run("R9, S027, S028, S031/a job that kills its workers is set aside at its crash cap, once", func(c *kase) {
		id := c.one(pacht.MaxCrashes(3))
		for n := 1; n <= 3; n++ {
			c.claimID("a", id)
			c.age(2 * pacht.DefaultTTL)
			got := c.watch().Expired
			if len(got) != 1 || got[0].Crashes != n {
				c.Errorf("crash %d: %+v", n, got)
			}
			c.age(pacht.DefaultTTL)
		}
		c.same("ledger", c.outcomes(id), "1 Expired Pending, 2 Expired Pending, 3 Expired Stuck")
		c.same("expired again", len(c.watch().Expired), 0)
		c.same("claimed", len(c.claim("a", 10)), 0)
	})
	g.run("R9/failures and snoozes between crashes begin the count anew, releases do not", func(c *kase) {
		id := c.one(pacht.MaxCrashes(2))
		for _, outcome := range []pacht.Outcome{pacht.OutcomeFailed, pacht.OutcomeSnoozed} {
			c.crash(id)
			c.same("crashes", c.job(id).Crashes, 1)
			c.close(c.claimID("a", id).Ref(), outcome)
			c.same("crashes", c.job(id).Crashes, 0)
		}
		c.crash(id)
		c.close(c.claimID("a", id).Ref(), pacht.OutcomeReleased)
		c.same("crashes", c.job(id).Crashes, 1)
		c.crash(id)
		c.same("status", c.job(id).Status, pacht.Stuck)
	})
	g.run("R9, S030/an expiry of the last attempt parks, it is not Dead and not Processing", func(c *kase) {
		id := c.one(pacht.MaxAttempts(1))
		c.crash(id)
		j := c.job(id)
		c.same("job", fmt.Sprint(j.Status, j.Attempt, j.MaxAttempts), fmt.Sprint(pacht.Stuck, 1, 1))
		c.must(c.Store.Retry(c.ctx, id, act))
		c.same("attempt after a retry by hand", c.claimID("a", id).Attempt, 2)
	})
	g.run("R9/an expired job waits a tenth of its TTL and is then claimed by anybody", func(c *kase) {
		held := c.take("a", pacht.TTL(time.Minute))
		c.age(2 * time.Minute)
		pass := c.watch()
		c.near("run_at", c.job(held.ID).RunAt, pass.Now.Add(6*time.Second))
		c.refuseID("b", held.ID)
		c.age(7 * time.Second)
		got := c.claim("b", 1)
		if len(got) != 1 || got[0].Token != 2 || got[0].Attempt != 2 || got[0].Crashes != 1 {
			c.Errorf("claimed %+v", got)
		}
	})
	g.run("R4/of two watchers that look at once each lease is closed by one", expireTwoWatchers)
	g.run("a pass is paged: the first full page hides nothing behind it", expirePages)
	g.run("R12/a pass goes on past leases that another transaction holds, and names them", expireLocked)
	g.run("watchers take turns: a pass that is not due looks at nothing", expireTurn)
	g.run("a pass is due at the earliest lease_until that the last one found, and at least every period", expireDue)
	g.run("R6/a worker that missed its beat brings the look forward, once, and never the expiry", expireMissedBeat)
	g.run("R6/a beat brings the look forward to the first lease that its worker holds", expireFirstUntil)
	g.run("a pass that makes no sense is refused", func(c *kase) {
		for _, req := range []pacht.ExpireRequest{
			{Limit: 1, Period: time.Second},
			{By: "w", Period: time.Second},
			{By: "w", Limit: pacht.MaxBatch + 1, Period: time.Second},
			{By: "w", Limit: 1},
		} {
			if pass, err := c.Store.Expire(c.ctx, req); err == nil || pass.Turn {
				c.Errorf("%+v: %+v, %v", req, pass, err)
			}
		}
	})
}

// crash claims the job, lets its lease run out and its backoff pass.
func (c *kase) crash(id pacht.ID) {
	c.Helper()
	c.claimID("crasher", id)
	c.age(2 * pacht.DefaultTTL)
	c.watch()
	c.age(2 * pacht.DefaultTTL)
}

func expireOnlyExpired(c *kase) {
	ids := c.many(6)
	c.claim("a", 3)
	c.age(2 * pacht.DefaultTTL)
	c.claim("b", 2)
	long := c.take("c", pacht.TTL(time.Hour))
	c.close(c.take("d").Ref(), pacht.OutcomeUnknown)
	before := map[pacht.ID]string{}
	for _, id := range append(slices.Clone(ids[3:]), long.ID) {
		before[id] = c.lease(id)
	}
	pass := c.watch()
	c.near("now", pass.Now, c.now().Add(-5*time.Second))
	if len(pass.Expired) != 3 || len(pass.Locked) != 0 || pass.More != 0 {
		c.Fatalf("pass %+v", pass)
	}
	for i, e := range pass.Expired {
		c.same("expiry", fmt.Sprint(e.Ref, e.Kind, e.Queue, e.Owner, e.Next, e.Crashes), fmt.Sprint(pacht.Ref{Job: ids[i], Token: 1}, "work", c.queue, "a", pacht.Pending, 1))
		if !e.LeaseUntil.Before(pass.Now) {
			c.Errorf("lease_until %s is not past %s", e.LeaseUntil, pass.Now)
		}
		c.same("ledger", c.outcomes(ids[i]), "1 Expired Pending")
		c.same("owner in the ledger", c.ledger(ids[i])[0].Owner, "a")
		c.same("late in the ledger", c.ledger(ids[i])[0].Late, false)
	}
	for id, row := range before {
		c.same("a row that has not expired", c.lease(id), row)
	}
}

func expireTwoWatchers(c *kase) {
	stores := []Store{c.Store, c.Reopen(c.T)}
	c.many(200)
	c.claim("a", 200)
	c.age(2 * pacht.DefaultTTL)
	var passes [4][]pacht.Expiry
	c.together(len(passes), func(i int) {
		for range 3 {
			p, err := stores[i%2].Expire(c.ctx, pacht.ExpireRequest{By: fmt.Sprint("w", i), Limit: 150, Period: time.Minute, Force: true})
			if err != nil {
				c.Errorf("watcher %d: %v", i, err)
			}
			passes[i] = append(passes[i], p.Expired...)
		}
	})
	seen := map[pacht.Ref]int{}
	for _, list := range passes {
		for _, e := range list {
			seen[e.Ref]++
		}
	}
	for ref, n := range seen {
		if n != 1 {
			c.Errorf("%s was expired by %d watchers", ref, n)
		}
	}
	for _, e := range c.watch().Expired { // what a skipped lock may have left
		seen[e.Ref]++
	}
	c.same("expired", len(seen), 200)
	c.same("history rows", c.query("SELECT count(*) FROM {attempts}")[0], "200")
}

func expirePages(c *kase) {
	for _, n := range []int{10, 9} {
		ids := c.many(n, pacht.OnCrash(pacht.CrashHold))
		c.claim("a", n)
		c.age(2 * pacht.DefaultTTL)
		var got []pacht.ID
		req := pacht.ExpireRequest{By: "w", Limit: 3, Period: time.Minute, Force: true}
		for pages := 0; pages < 6; pages++ {
			pass, err := c.Store.Expire(c.ctx, req)
			c.must(err)
			if len(pass.Expired) > 3 {
				c.Errorf("a page of %d for a limit of 3", len(pass.Expired))
			}
			for _, e := range pass.Expired {
				got = append(got, e.Ref.Job)
			}
			if req.After = pass.More; pass.More == 0 {
				break
			}
		}
		if !slices.Equal(got, ids) {
			c.Errorf("expired %v, want %v", got, ids)
		}
	}
}

func expireLocked(c *kase) {
	c.many(3)
	held := c.claim("a", 3)
	c.age(2 * pacht.DefaultTTL)
	tx := c.begin()
	c.must(tx.SettleTx(c.ctx, pacht.Settlement{Ref: held[1].Ref(), Outcome: pacht.OutcomeCompleted}))
	pass, err := c.Store.Expire(c.ctx, pacht.ExpireRequest{By: "w", Limit: 10, Period: time.Minute, Force: true})
	if !c.wholeFileLocked(err) {
		c.must(err)
		c.same("expired", fmt.Sprint(pass.Expired[0].Ref, pass.Expired[len(pass.Expired)-1].Ref, len(pass.Expired)), fmt.Sprint(held[0].Ref(), held[2].Ref(), 2))
		c.same("locked", fmt.Sprint(pass.Locked), fmt.Sprint([]pacht.Ref{held[1].Ref()}))
	}
	c.must(tx.Commit(c.ctx))
	c.watch()
	for i, want := range []string{"1 Expired Pending", "1 Completed Completed", "1 Expired Pending"} {
		c.same("ledger", c.outcomes(held[i].ID), want)
	}
	c.same("late", c.ledger(held[1].ID)[0].Late, true)
}

func (c *kase) expire(by string, period time.Duration) pacht.Pass {
	c.Helper()
	pass, err := c.Store.Expire(c.ctx, pacht.ExpireRequest{By: by, Limit: 100, Period: period})
	c.must(err)
	return pass
}

func expireTurn(c *kase) {
	stores := []Store{c.Store, c.Reopen(c.T)}
	for round := range 3 {
		passes := make([]pacht.Pass, 8)
		c.together(len(passes), func(i int) {
			var err error
			passes[i], err = stores[i%2].Expire(c.ctx, pacht.ExpireRequest{By: fmt.Sprint("w", i), Limit: 10, Period: time.Minute})
			if err != nil {
				c.Errorf("watcher %d: %v", i, err)
			}
		})
		turns, by := 0, ""
		for i, p := range passes {
			if p.Turn {
				turns++
				by = fmt.Sprint("w", i)
			}
		}
		c.same("passes", turns, 1)
		info, err := c.Store.Watch(c.ctx)
		c.must(err)
		c.same("passed by", info.PassedBy, by)
		c.near("passed at", info.PassedAt, c.now().Add(-5*time.Second))
		if !info.NextAt.After(info.PassedAt) || info.NextAt.After(info.PassedAt.Add(time.Minute)) {
			c.Errorf("round %d: passed at %s, next at %s", round, info.PassedAt, info.NextAt)
		}
		// R7: nothing is looked at out of turn, however long it has expired.
		if round == 0 {
			c.many(1)
			c.claim("a", 1)
			c.sql("UPDATE {leases} SET lease_until = claimed_at, claimed_at = run_at")
			c.same("expired out of turn", len(c.expire("w", time.Minute).Expired), 0)
		}
		c.age(61 * time.Second)
	}
	c.same("left", c.query("SELECT count(*) FROM {leases} WHERE status = 'Processing'")[0], "0")
}

func expireDue(c *kase) {
	held := c.take("a", pacht.TTL(20*time.Second))
	pass := c.expire("w", time.Minute)
	c.same("turn", pass.Turn, true)
	if pass.NextIn <= 0 || pass.NextIn > 20*time.Second {
		c.Errorf("next in %s, the only lease ends within 20s", pass.NextIn)
	}
	c.same("turn before", c.expire("w", time.Minute).Turn, false)
	c.age(21 * time.Second)
	pass = c.expire("w", time.Minute)
	if !pass.Turn || len(pass.Expired) != 1 || pass.Expired[0].Ref != held.Ref() {
		c.Errorf("when its time has come: %+v", pass)
	}
	if pass.NextIn <= 20*time.Second || pass.NextIn > time.Minute {
		c.Errorf("next in %s with nothing held, want the period", pass.NextIn)
	}
	not := c.expire("w", time.Minute)
	if not.Turn || not.NextIn <= 0 || not.NextIn > time.Minute {
		c.Errorf("not due: %+v", not)
	}
	c.age(time.Minute)
	c.same("turn after the period", c.expire("w", time.Hour).Turn, true)
	c.age(2 * time.Minute)
	c.same("turn for a watcher with the same period", c.expire("w", time.Hour).Turn, false)
	c.same("turn for a watcher with a shorter period", c.expire("w", time.Minute).Turn, true)
}

func expireMissedBeat(c *kase) {
	c.same("turn", c.expire("w", time.Hour).Turn, true)
	held := c.take("crashed", pacht.TTL(30*time.Second))
	c.must(c.Store.Beat(c.ctx, pacht.WorkerInfo{Owner: "crashed", Host: "h", PID: 1, Queues: []string{c.queue}, Kinds: []string{"work"},
		BeatEvery: time.Second, LastUntil: held.LeaseUntil}))
	c.age(10 * time.Second)
	if early := c.expire("w", time.Hour); len(early.Expired) != 0 {
		c.Errorf("expired before its time: %+v", early)
	}
	c.age(30 * time.Second)
	pass := c.expire("w", time.Hour)
	if !pass.Turn || len(pass.Expired) != 1 {
		c.Errorf("the worker's last lease has ended: %+v", pass)
	}
	c.same("turn again", c.expire("w", time.Hour).Turn, false)
}

// wholeFileLocked says whether a database with one lock for all refused the call because of
// it: then nothing may have been written, and the rows' own answers cannot be seen.
func (c *kase) wholeFileLocked(err error) bool { return errors.Is(err, pacht.ErrInTransaction) }

func expireFirstUntil(c *kase) {
	c.same("turn", c.expire("w", time.Hour).Turn, true)
	c.same("turn again", c.expire("w", time.Hour).Turn, false)
	held := c.take("alive", pacht.TTL(30*time.Second))
	beat := pacht.WorkerInfo{Owner: "alive", Host: "h", PID: 1, Queues: []string{c.queue}, Kinds: []string{"work"},
		BeatEvery: time.Second, LastUntil: held.LeaseUntil, FirstUntil: held.LeaseUntil}
	c.must(c.Store.Beat(c.ctx, beat))
	info, err := c.Store.Watch(c.ctx)
	c.must(err)
	if off := info.NextAt.Sub(held.LeaseUntil).Abs(); off > time.Millisecond {
		c.Errorf("the next look is at %s, the lease ends at %s", info.NextAt, held.LeaseUntil)
	}
	c.same("turn before its end", c.expire("w", time.Hour).Turn, false)
	beat.FirstUntil = held.LeaseUntil.Add(time.Minute)
	c.must(c.Store.Beat(c.ctx, beat))
	later, err := c.Store.Watch(c.ctx)
	c.must(err)
	c.same("a later lease does not put the look off", later.NextAt.Equal(info.NextAt), true)
	c.age(40 * time.Second)
	if pass := c.expire("w", time.Hour); !pass.Turn || len(pass.Expired) != 1 {
		c.Errorf("when its time has come: %+v", pass)
	}
}
