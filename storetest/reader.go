package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

func readerCases(g *group) {
	g.run("a job that is not there is not found, and has no history", func(c *kase) {
		for _, id := range []pacht.ID{1 << 40, 0, -1} {
			if j, err := c.Store.Job(c.ctx, id); !errors.Is(err, pacht.ErrNotFound) {
				c.Errorf("job %d: %+v, %v", id, j, err)
			}
		}
		c.same("ledger", len(c.ledger(1<<40)), 0)
		c.same("steps", c.steps(1<<40), "")
	})
	g.run("jobs are listed newest first, by every filter, without args", listFilters)
	g.run("the view job_status says of every job what the store says", func(c *kase) {
		for _, status := range pacht.Statuses {
			j := c.in(status)
			view := c.query("SELECT job_id, kind, queue, status, token, attempt, max_attempts, coalesce(lease_owner, ''), coalesce(last_outcome, '') FROM {job_status} WHERE job_id = %d", j.ID)
			last := ""
			if ledger := c.ledger(j.ID); len(ledger) > 0 {
				last = string(ledger[len(ledger)-1].Outcome)
			}
			c.same("view", strings.Join(view, "\n"), fmt.Sprintf("%d|%s|%s|%s|%d|%d|%d|%s|%s", j.ID, j.Kind, j.Queue, j.Status, j.Token, j.Attempt, j.MaxAttempts, j.LeaseOwner, last))
		}
	})
	g.run("lists are paged by id without a gap or a twin", func(c *kase) {
		ids := c.many(23)
		for _, j := range c.claim("a", 7) {
			c.close(j.Ref(), pacht.OutcomeCompleted)
		}
		var got []pacht.ID
		f := pacht.Filter{Limit: 5}
		for page := c.list(f); len(page) > 0; page = c.list(f) {
			got = append(got, page...)
			f.Before = page[len(page)-1]
		}
		slices.Reverse(ids)
		if !slices.Equal(got, ids) {
			c.Errorf("pages give %v, want %v", got, ids)
		}
	})
	g.run("a list that makes no sense is refused", func(c *kase) {
		for _, f := range []pacht.Filter{{Limit: -1}, {Limit: 1001}, {Status: "done"}} {
			if list, err := c.Store.Jobs(c.ctx, f); err == nil {
				c.Errorf("%+v: %v", f, list)
			}
		}
	})
	g.run("unfinished, Dead and Cancelled jobs are counted by queue, with what is due and expired", func(c *kase) {
		other := pacht.Queue(c.queue + "-b")
		c.in(pacht.Processing)
		c.age(2 * pacht.DefaultTTL)
		for _, status := range pacht.Statuses {
			c.in(status)
		}
		c.one(pacht.RunIn(time.Hour))
		c.one(other)
		counts, err := c.Store.Counts(c.ctx)
		c.must(err)
		var got []string
		for _, n := range counts {
			got = append(got, fmt.Sprintf("%s %s %d due %d expired %d", strings.TrimPrefix(n.Queue, c.queue), n.Status, n.Jobs, n.Due, n.Expired))
		}
		slices.Sort(got)
		c.same("counts", strings.Join(got, "\n"), strings.Join([]string{
			" Cancelled 1 due 0 expired 0",
			" Dead 1 due 0 expired 0",
			" Pending 2 due 1 expired 0",
			" Processing 2 due 0 expired 1",
			" Stuck 1 due 0 expired 0",
			"-b Pending 1 due 1 expired 0",
		}, "\n"))
	})
	g.run("S083/all due jobs are counted by queue and kind, however many, with the oldest", waiting)
	g.run("steps are kept by attempt and read by the next one", func(c *kase) {
		held := c.take("a")
		c.must(c.Store.SetStep(c.ctx, held.Ref(), "charged", json.RawMessage(`{"id": 9007199254740993}`)))
		c.must(c.Store.SetStep(c.ctx, held.Ref(), "charged", nil))
		c.close(held.Ref(), pacht.OutcomeFailed)
		next := c.claimID("b", held.ID)
		c.must(c.Store.SetStep(c.ctx, next.Ref(), "booked", json.RawMessage(`[]`)))
		c.close(next.Ref(), pacht.OutcomeCompleted)
		c.same("steps", c.steps(held.ID), `1 charged {"id": 9007199254740993}, 1 charged , 2 booked []`)
		// R3: a step of a lease that is closed is refused, by the ledger's word.
		c.same("how it was closed", c.lost(c.Store.SetStep(c.ctx, next.Ref(), "late", nil), next.Ref()).Outcome, pacht.OutcomeCompleted)
	})
	g.run("R7/a step past lease_until is refused or kept by what became of the lease, not by a clock", func(c *kase) {
		held := c.take("a")
		c.age(2 * pacht.DefaultTTL)
		c.must(c.Store.SetStep(c.ctx, held.Ref(), "late", nil))
		c.watch()
		c.lost(c.Store.SetStep(c.ctx, held.Ref(), "later", nil), held.Ref())
		c.same("steps", c.query("SELECT name FROM {steps}")[0], "late")
	})
	g.run("S071/a step with a bad name or bad data is refused", func(c *kase) {
		held := c.take("a")
		for name, data := range map[string]string{"": "1", "a b": "1", "nul": `"\u0000"`, "broken": "{", "big": `"` + strings.Repeat("x", pacht.MaxArgsBytes) + `"`} {
			var invalid *pacht.InvalidError
			if err := c.Store.SetStep(c.ctx, held.Ref(), name, json.RawMessage(data)); !errors.As(err, &invalid) {
				c.Errorf("step %q: %v", name, err)
			}
		}
		c.same("steps", c.steps(held.ID), "")
	})
	g.run("workers beat, and leave in order or do not", workers)
	g.run("held times are measured against the TTL, by kind", func(c *kase) {
		for range 3 {
			c.close(c.take("a").Ref(), pacht.OutcomeCompleted)
		}
		late := c.take("a", pacht.TTL(time.Second))
		gone := c.take("a")
		c.age(time.Hour)
		c.close(late.Ref(), pacht.OutcomeCompleted)
		c.watch()
		c.age(pacht.DefaultTTL)
		c.crash(gone.ID)
		stats, err := c.Store.LeaseStats(c.ctx, 100)
		c.must(err)
		if len(stats) != 1 {
			c.Fatalf("stats %+v", stats)
		}
		s := stats[0]
		c.same("stats", fmt.Sprint(s.Kind, s.Leases, s.MinTTL, s.LongerThanTTL, s.Expired, s.Late), fmt.Sprint("work", 6, time.Second, 1, 2, 1))
		if s.Renewed != 0 || s.Max < time.Hour || s.P50 > time.Hour || s.P99 < s.P50 || s.Max < s.P99 {
			c.Errorf("stats %+v", s)
		}
	})
	g.run("the claim's statement can be read", func(c *kase) {
		if text := c.Store.ClaimSQL(); !strings.Contains(text, "UPDATE") || !strings.Contains(text, "Pending") || !strings.Contains(text, c.Table("leases")) {
			c.Errorf("claim: %s", text)
		}
	})
}

func (c *kase) list(f pacht.Filter) []pacht.ID {
	c.Helper()
	jobs, err := c.Store.Jobs(c.ctx, f)
	c.must(err)
	var ids []pacht.ID
	for _, j := range jobs {
		if len(j.Args) != 0 {
			c.Errorf("job %d is listed with args", j.ID)
		}
		if whole := c.job(j.ID); whole.Status != j.Status || whole.Token != j.Token || whole.Attempt != j.Attempt ||
			!whole.FinishedAt.Equal(j.FinishedAt) || !whole.LeaseUntil.Equal(j.LeaseUntil) || !whole.RunAt.Equal(j.RunAt) || whole.Kind != j.Kind {
			c.Errorf("the list says\n %+v\nand the job\n %+v", j, whole)
		}
		ids = append(ids, j.ID)
	}
	return ids
}

func waiting(c *kase) {
	ask := func() string {
		c.Helper()
		found, err := c.Store.Waiting(c.ctx)
		c.must(err)
		var got []string
		for _, w := range found {
			got = append(got, fmt.Sprintf("%s %s %d %s", strings.TrimPrefix(w.Queue, c.queue), w.Kind, w.Jobs, w.Since.UTC().Format(time.RFC3339Nano)))
		}
		return strings.Join(got, "\n")
	}
	c.same("in an empty database", ask(), "")
	odd := c.new(pacht.Queue(c.queue + "-b"))
	odd.Kind = "odd"
	old := c.job(c.enqueue(odd)[0])
	c.age(time.Hour)
	old.RunAt = old.RunAt.Add(-time.Hour)
	// More than any list of jobs would show at once, all of them newer.
	many := c.many(1001)
	c.one(pacht.RunIn(time.Hour)) // not due
	for _, status := range pacht.Statuses {
		if status != pacht.Pending {
			c.in(status) // not Pending
		}
	}
	odd = c.new(pacht.Queue(c.queue + "-b"))
	odd.Kind = "more"
	more := c.job(c.enqueue(odd)[0])
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	c.same("waiting", ask(), strings.Join([]string{
		" work 1001 " + stamp(c.job(many[0]).RunAt),
		"-b more 1 " + stamp(more.RunAt),
		"-b odd 1 " + stamp(old.RunAt),
	}, "\n"))
}

func listFilters(c *kase) {
	expired := c.take("silent").ID
	c.age(2 * pacht.DefaultTTL)
	by := map[pacht.Status]pacht.ID{}
	for _, status := range pacht.Statuses {
		by[status] = c.in(status).ID
	}
	odd := c.new(pacht.Queue(c.queue + "-b"))
	odd.Kind = "odd"
	oddID := c.enqueue(odd)[0]
	all := []pacht.ID{oddID, by[pacht.Cancelled], by[pacht.Dead], by[pacht.Completed], by[pacht.Stuck], by[pacht.Processing], by[pacht.Pending], expired}
	for name, ask := range map[string]struct {
		f    pacht.Filter
		want []pacht.ID
	}{
		"all":            {pacht.Filter{}, all},
		"the newest two": {pacht.Filter{Limit: 2}, all[:2]},
		"before":         {pacht.Filter{Before: by[pacht.Completed]}, all[4:]},
		"pending":        {pacht.Filter{Status: pacht.Pending}, []pacht.ID{oddID, by[pacht.Pending]}},
		"pending, kind":  {pacht.Filter{Status: pacht.Pending, Kind: "work"}, []pacht.ID{by[pacht.Pending]}},
		"processing":     {pacht.Filter{Status: pacht.Processing}, []pacht.ID{by[pacht.Processing], expired}},
		"stuck":          {pacht.Filter{Status: pacht.Stuck}, []pacht.ID{by[pacht.Stuck]}},
		"completed":      {pacht.Filter{Status: pacht.Completed}, []pacht.ID{by[pacht.Completed]}},
		"dead":           {pacht.Filter{Status: pacht.Dead}, []pacht.ID{by[pacht.Dead]}},
		"cancelled":      {pacht.Filter{Status: pacht.Cancelled}, []pacht.ID{by[pacht.Cancelled]}},
		"kind":           {pacht.Filter{Kind: "odd"}, []pacht.ID{oddID}},
		"queue":          {pacht.Filter{Queue: c.queue}, all[1:]},
		"kind and queue": {pacht.Filter{Kind: "odd", Queue: c.queue}, nil},
		"dead, queue":    {pacht.Filter{Status: pacht.Dead, Queue: c.queue}, []pacht.ID{by[pacht.Dead]}},
		"dead, no queue": {pacht.Filter{Status: pacht.Dead, Queue: c.queue + "-b"}, nil},
		"owner":          {pacht.Filter{Owner: "silent"}, []pacht.ID{expired}},
		"expired":        {pacht.Filter{Expired: true}, []pacht.ID{expired}},
		"expired, owner": {pacht.Filter{Expired: true, Owner: "a"}, nil},
		"no such owner":  {pacht.Filter{Owner: "nobody"}, nil},
		"before, dead":   {pacht.Filter{Status: pacht.Dead, Before: by[pacht.Dead]}, nil},
	} {
		if got := c.list(ask.f); !slices.Equal(got, ask.want) {
			c.Errorf("%s: %v, want %v", name, got, ask.want)
		}
	}
	// A redriven job is not Dead any more, though its history says that it was.
	c.must(c.Store.Retry(c.ctx, by[pacht.Dead], act))
	c.same("dead after a redrive", len(c.list(pacht.Filter{Status: pacht.Dead})), 0)
}

func workers(c *kase) {
	info := func(owner string) pacht.WorkerInfo {
		return pacht.WorkerInfo{Owner: owner, Host: "host-1", PID: 4711, Queues: []string{"a", "b"}, Kinds: []string{"k1", "k:2"}, BeatEvery: 20 * time.Second}
	}
	until := c.now().Add(time.Minute).Truncate(time.Millisecond)
	c.must(c.Store.Beat(c.ctx, info("old")))
	c.must(c.Store.Beat(c.ctx, info("left")))
	c.age(time.Hour)
	c.must(c.Store.Beat(c.ctx, info("new")))
	again := info("old")
	again.LastUntil = until
	c.must(c.Store.Beat(c.ctx, again))
	c.must(c.Store.Leave(c.ctx, "left"))
	list, err := c.Store.Workers(c.ctx)
	c.must(err)
	var names []string
	for _, w := range list {
		names = append(names, w.Owner)
		c.same("what it said", fmt.Sprint(w.Host, w.PID, w.Queues, w.Kinds, w.BeatEvery), fmt.Sprint("host-1", 4711, []string{"a", "b"}, []string{"k1", "k:2"}, 20*time.Second))
	}
	c.same("the running ones first, then the newest", fmt.Sprint(names), "[new old left]")
	now := c.now()
	old, left := list[1], list[2]
	c.near("started", old.StartedAt, now.Add(-time.Hour-5*time.Second))
	c.near("beat", old.BeatAt, now.Add(-5*time.Second))
	c.same("last until", old.LastUntil.Equal(until), true)
	c.same("missed", old.Missed(now), false)
	c.near("stopped", left.StoppedAt, now.Add(-5*time.Second))
	if !list[0].StoppedAt.IsZero() || !list[0].LastUntil.IsZero() {
		c.Errorf("new: %+v", list[0])
	}
	c.age(2 * time.Minute)
	list, err = c.Store.Workers(c.ctx)
	c.must(err)
	for _, w := range list {
		c.same(w.Owner+" missed", w.Missed(c.now()), w.Owner != "left")
	}
}
