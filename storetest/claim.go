package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

func claimCases(g *group) {
	g.run("R1/a claim answers the whole row, Processing and held", claimAnswersTheRow)
	g.run("R1/a claim never takes more than asked, and fewer are no error", func(c *kase) {
		c.many(10)
		for _, want := range []int{4, 4, 2, 0} {
			if got := c.claim("a", 4); len(got) != want {
				c.Errorf("claimed %d, want %d", len(got), want)
			}
		}
	})
	g.run("R1/an empty queue is no error", func(c *kase) {
		if got := c.claim("a", 10); len(got) != 0 {
			c.Errorf("claimed %d of nothing", len(got))
		}
	})
	g.run("R1/a batch claim leaves an expired lease to the watcher", func(c *kase) {
		held := c.take("a")
		c.age(2 * pacht.DefaultTTL)
		before := c.lease(held.ID)
		if got := c.claim("b", 10); len(got) != 0 {
			c.Errorf("claimed %v", got)
		}
		c.same("the lease row", c.lease(held.ID), before)
	})
	g.run("R1/a claim takes neither held nor parked nor finished jobs", func(c *kase) {
		c.take("a")
		c.close(c.take("a").Ref(), pacht.OutcomeUnknown)
		c.close(c.take("a").Ref(), pacht.OutcomeCompleted)
		if got := c.claim("b", 10); len(got) != 0 {
			c.Errorf("claimed %v", got)
		}
	})
	g.run("R2/each claim raises the token by one, whatever ended the last lease", func(c *kase) {
		id := c.one()
		outcomes := []pacht.Outcome{pacht.OutcomeFailed, pacht.OutcomeReleased, pacht.OutcomeSnoozed, pacht.OutcomeExpired, pacht.OutcomeFailed}
		for i, outcome := range outcomes {
			job := c.claimID("a", id)
			c.same("token", job.Token, pacht.Token(i+1))
			if outcome == pacht.OutcomeExpired {
				c.age(2 * pacht.DefaultTTL)
				c.watch()
				c.age(pacht.DefaultTTL)
				continue
			}
			c.close(job.Ref(), outcome)
		}
		c.same("token at the end", c.job(id).Token, pacht.Token(len(outcomes)))
	})
	g.run("R5, S027/the attempt is counted by the claim itself", func(c *kase) {
		job := c.take("a", pacht.MaxAttempts(3))
		c.same("attempt in the answer", job.Attempt, 1)
		c.same("attempt in the row", c.job(job.ID).Attempt, 1)
	})
	g.run("R6, S053/a time that is past means now, and now is due", func(c *kase) {
		ids := []pacht.ID{c.one(pacht.RunAt(time.Unix(1, 0))), c.one(pacht.RunIn(-time.Hour)), c.one()}
		now := c.now()
		for _, id := range ids {
			c.near("run_at", c.job(id).RunAt, now.Add(-time.Second))
		}
		c.same("claimed", len(c.claim("a", 10)), 3)
	})
	g.run("R6/a job for later is claimed when its time has come and not before", func(c *kase) {
		at := c.one(pacht.RunAt(c.now().Add(time.Hour)))
		in := c.one(pacht.RunIn(time.Hour))
		for _, id := range []pacht.ID{at, in} {
			c.near("run_at", c.job(id).RunAt, c.now().Add(time.Hour-20*time.Second))
			c.refuseID("a", id)
		}
		c.same("claimed before", len(c.claim("a", 10)), 0)
		c.age(time.Hour + time.Minute)
		c.same("claimed after", len(c.claim("a", 10)), 2)
	})
	g.run("the best priority goes first, strictly; then run_at, then id", claimOrder)
	g.run("S083/kinds that were not asked for stay where they are", func(c *kase) {
		other := c.new()
		other.Kind = "other"
		ids := c.enqueue(other, c.new(), other)
		got := c.claim("a", 10)
		if len(got) != 1 || got[0].ID != ids[1] {
			c.Errorf("claimed %v", got)
		}
		c.same("attempt of another kind", c.job(ids[0]).Attempt, 0)
		req := c.request("a", 10)
		req.Kinds = []string{"absent", "other"}
		rest, err := c.Store.Claim(c.ctx, req)
		c.must(err)
		c.same("claimed of the other kind", len(rest.Jobs), 2)
	})
	g.run("S083/due jobs behind many of a kind that nobody here handles are found", func(c *kase) {
		other := c.new(pacht.Priority(1))
		other.Kind = "other"
		c.enqueue(slices.Repeat([]pacht.NewJob{other}, 300)...)
		c.many(3, pacht.Priority(1))
		c.many(3, pacht.Priority(4))
		c.same("claimed", len(c.claim("a", 10)), 6)
	})
	g.run("queues are apart", func(c *kase) {
		c.one()
		c.one(pacht.Queue(c.queue + "-other"))
		got := c.claim("a", 10)
		if len(got) != 1 || got[0].Queue != c.queue {
			c.Errorf("claimed %v", got)
		}
	})
	g.run("a request out of bounds is refused with the bound named", claimBounds)
	g.alone("R1/limits hold under the worst plans that the planner can choose", badPlans)
	g.run("R4/a claim whose answer was lost is found by its owner", claimHeldBy)
	g.run("S082, S024/rows that no rule allows are refused by the database", impossibleRows)
}

func claimAnswersTheRow(c *kase) {
	id := c.one(pacht.Priority(2), pacht.MaxAttempts(7), pacht.MaxCrashes(4), pacht.TTL(90*time.Second),
		pacht.OnCrash(pacht.CrashHold), pacht.Metadata(map[string]string{"trace": "t1"}))
	answer, err := c.Store.Claim(c.ctx, c.request("owner-1", 5))
	c.must(err)
	if len(answer.Jobs) != 1 {
		c.Fatalf("claimed %d", len(answer.Jobs))
	}
	j := answer.Jobs[0]
	c.near("now", answer.Now, c.now().Add(-5*time.Second))
	c.same("facts", fmt.Sprintf("%d %s %s %d %s %s", j.ID, j.Kind, j.Queue, j.Priority, j.Args, j.Metadata),
		fmt.Sprintf(`%d work %s 2 {"n":0} {"trace":"t1"}`, id, c.queue))
	c.same("lease", fmt.Sprint(j.Status, j.Attempt, j.MaxAttempts, j.Crashes, j.MaxCrashes, j.Token, j.TTL, j.CrashPolicy, j.LeaseOwner, j.CancelRequested),
		fmt.Sprint(pacht.Processing, 1, 7, 0, 4, pacht.Token(1), 90*time.Second, pacht.CrashHold, "owner-1", false))
	c.near("claimed_at", j.ClaimedAt, answer.Now)
	c.near("lease_until", j.LeaseUntil, answer.Now.Add(90*time.Second))
	c.near("created_at", j.CreatedAt, answer.Now.Add(-5*time.Second))
	read := c.job(id)
	if !read.LeaseUntil.Equal(j.LeaseUntil) || !read.ClaimedAt.Equal(j.ClaimedAt) || !read.RunAt.Equal(j.RunAt) || read.LeaseOwner != j.LeaseOwner || read.Token != j.Token {
		c.Errorf("the claim answered\n %+v\nand the row says\n %+v", j, read)
	}
	if !j.FinishedAt.IsZero() {
		c.Errorf("finished_at of a held job is %s", j.FinishedAt)
	}
}

func claimOrder(c *kase) {
	low := c.one(pacht.Priority(4))
	c.age(time.Hour)
	late := c.one(pacht.Priority(2))
	first := c.one(pacht.Priority(1))
	usual := c.one()
	twin := c.one(pacht.Priority(2))
	young := c.one(pacht.Priority(2))
	old := c.one(pacht.Priority(2)) // put back with the time it had, as a release does
	sameTime := "UPDATE {leases} SET run_at = (SELECT run_at FROM {leases} WHERE job_id = %d) WHERE job_id = %d"
	c.sql(sameTime, low, old)
	c.age(time.Hour)
	c.sql(sameTime, late, twin)
	c.age(time.Hour)
	last := c.one(pacht.Priority(2))
	c.sql(sameTime, last, young)
	want := []pacht.ID{first, old, late, twin, young, last, usual, low}
	var got []pacht.ID
	for range want {
		jobs := c.claim("a", 1)
		if len(jobs) == 1 {
			got = append(got, jobs[0].ID)
		}
	}
	if !slices.Equal(got, want) {
		c.Errorf("claimed in the order %v, want %v", got, want)
	}
	c.same("left over", len(c.claim("a", 10)), 0)
}

func claimBounds(c *kase) {
	c.one()
	for field, change := range map[string]func(*pacht.ClaimRequest){
		"owner": func(r *pacht.ClaimRequest) { r.Owner = "" },
		"queue": func(r *pacht.ClaimRequest) { r.Queue = "no such/ name" },
		"kinds": func(r *pacht.ClaimRequest) { r.Kinds = nil },
		"kind":  func(r *pacht.ClaimRequest) { r.Kinds = []string{"\x00"} },
		"limit": func(r *pacht.ClaimRequest) { r.Limit = pacht.MaxBatch + 1 },
	} {
		req := c.request("a", 1)
		change(&req)
		got, err := c.Store.Claim(c.ctx, req)
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field || len(got.Jobs) != 0 {
			c.Errorf("%s: got %d jobs, %v", field, len(got.Jobs), err)
		}
	}
	for _, owner := range []string{"", "a\x00b", "\xff", strings.Repeat("o", pacht.MaxOwnerBytes+1)} {
		if _, ok, err := c.Store.ClaimID(c.ctx, owner, 1); ok || err == nil {
			c.Errorf("claim by id as %q: %v, %v", owner, ok, err)
		}
	}
	c.same("claimed after all", len(c.claim("a", 1)), 1)
}

func claimHeldBy(c *kase) {
	ids := c.many(5)
	c.claim("lost", 3)
	c.claim("other", 1)
	held, err := c.Store.HeldBy(c.ctx, "lost")
	c.must(err)
	c.same("held", len(held.Jobs), 3)
	c.near("now", held.Now, c.now().Add(-5*time.Second))
	for _, j := range held.Jobs {
		if !slices.Contains(ids[:3], j.ID) || string(j.Args) != `{"n":0}` || j.Token != 1 || j.Status != pacht.Processing || j.LeaseOwner != "lost" {
			c.Errorf("held: %+v", j)
		}
		// The worker that cannot adopt it gives it back with its attempt (R5).
		c.close(j.Ref(), pacht.OutcomeReleased)
		c.same("attempt", c.job(j.ID).Attempt, 0)
	}
	held, err = c.Store.HeldBy(c.ctx, "lost")
	c.must(err)
	c.same("held after release", len(held.Jobs), 0)
}

// impossibleRows: what a person or an older program might write by hand is refused, so that
// no claim and no pass has to survive it.
func impossibleRows(c *kase) {
	held, free := c.take("a", pacht.MaxAttempts(2)).ID, c.one(pacht.MaxAttempts(2))
	for _, try := range []struct {
		id  pacht.ID
		set string
	}{
		{held, "lease_until = NULL"},
		{held, "lease_owner = NULL"},
		{held, "claimed_at = NULL"},
		{held, "attempt = 3"},
		{held, "status = 'Pending'"},
		{held, "status = 'Completed'"},
		{held, "status = 'pending'"},
		{held, "token = 0"},
		{held, "ttl_ms = 0"},
		{free, "lease_owner = 'somebody'"},
		{free, "status = 'Processing'"},
		{free, "status = 'Stuck'"},
		{free, "cancel_requested = TRUE"},
		{free, "attempt = 2, token = 2"},
		{free, "attempt = -1"},
		{free, "crashes = -1"},
		{free, "priority = 5"},
		{free, "priority = 0"},
		{free, "crash_policy = 'discard'"},
	} {
		before := c.lease(try.id)
		if n, err := c.Exec(c.ctx, c.named("UPDATE {leases} SET %s WHERE job_id = %d", try.set, try.id)); err == nil {
			c.Errorf("%s was accepted for %d rows of\n %s", try.set, n, before)
		}
		c.same("the row", c.lease(try.id), before)
	}
	c.same("claimed", len(c.claim("b", 10)), 1)
}

// badPlans: some ways to write a claim took 21 rows for a limit of 2 under a nested loop.
func badPlans(c *kase) {
	if c.ForceBadPlans != nil {
		c.Store = c.ForceBadPlans(c.T)
	}
	c.many(30)
	want := 0
	for range 6 {
		got := c.claim("a", 2)
		want += 2
		c.same("claimed", len(got), 2)
		c.same("rows", c.query("SELECT count(*) FROM {leases} WHERE status = 'Processing'")[0], fmt.Sprint(want))
		c.close(got[0].Ref(), pacht.OutcomeCompleted)
		want--
	}
	c.same("claimed by id", c.claimID("b", c.one()).Attempt, 1)
	c.age(2 * pacht.DefaultTTL)
	pass, err := c.Store.Expire(c.ctx, pacht.ExpireRequest{By: "w", Limit: 3, Period: time.Minute, Force: true})
	c.must(err)
	c.same("expired", len(pass.Expired), 3)
	c.same("history", c.query("SELECT count(*) FROM {attempts} WHERE outcome = 'Expired'")[0], "3")
	n, err := c.Store.Prune(c.ctx, pacht.PruneRequest{Status: pacht.Completed, Limit: 4})
	c.must(err)
	c.same("pruned", n, 4)
	c.same("jobs", c.query("SELECT count(*) FROM {jobs}")[0], "27")
}
