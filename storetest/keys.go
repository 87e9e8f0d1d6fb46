package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
)

// keyed is a job with a key; n is its content.
func (c *kase) keyed(key string, n int, opts ...pacht.Option) pacht.NewJob {
	return pacht.New(work{N: n}, append([]pacht.Option{pacht.Queue(c.queue), pacht.IdempotencyKey(key)}, opts...)...)
}

// ask enqueues one job, refused or not.
func (c *kase) ask(j pacht.NewJob) pacht.Enqueued {
	c.Helper()
	answers, err := c.Store.Enqueue(c.ctx, []pacht.NewJob{j})
	c.must(err)
	return answers[0]
}

func (c *kase) fresh(what string, a pacht.Enqueued) pacht.ID {
	c.Helper()
	if a.Err != nil || a.Duplicate || a.ID == 0 {
		c.Errorf("%s: %+v, want a new job", what, a)
	}
	return a.ID
}

func (c *kase) duplicate(what string, a pacht.Enqueued, of pacht.ID) {
	c.Helper()
	if a.Err != nil || !a.Duplicate || a.ID != of {
		c.Errorf("%s: %+v, want a duplicate of job %d", what, a, of)
	}
}

func (c *kase) conflict(what string, a pacht.Enqueued, with pacht.ID) {
	c.Helper()
	var conflict *pacht.KeyConflictError
	if !errors.Is(a.Err, pacht.ErrKeyConflict) || !errors.As(a.Err, &conflict) || conflict.Job != with || a.Duplicate {
		c.Errorf("%s: %+v, want a conflict with job %d", what, a, with)
	}
}

func keyCases(g *group) {
	g.run("R11/the same key with the same content answers the first job, other content is a conflict", func(c *kase) {
		first := c.fresh("first", c.ask(c.keyed("k", 1)))
		c.duplicate("again", c.ask(c.keyed("k", 1)), first)
		c.duplicate("with other options", c.ask(c.keyed("k", 1, pacht.Priority(1), pacht.RunIn(time.Hour), pacht.Queue(c.queue+"-other"))), first)
		c.conflict("other args", c.ask(c.keyed("k", 2)), first)
		kind := c.keyed("k", 1)
		kind.Kind = "other"
		c.conflict("another kind", c.ask(kind), first)
		spaced := c.keyed("k", 1)
		spaced.Args = append([]byte(" "), spaced.Args...)
		c.conflict("other bytes of the same value", c.ask(spaced), first)
		c.same("jobs", c.query("SELECT count(*) FROM {jobs}")[0], "1")
	})
	g.run("R11/a key stands also when its job runs, waits, is parked or finished", func(c *kase) {
		first := c.ask(c.keyed("k", 1)).ID
		held := c.claimID("a", first)
		c.duplicate("running", c.ask(c.keyed("k", 1)), first)
		c.close(held.Ref(), pacht.OutcomeUnknown)
		c.duplicate("parked", c.ask(c.keyed("k", 1)), first)
		c.must(c.Store.Resolve(c.ctx, held.Ref(), pacht.Resolution{Status: pacht.Completed}, act))
		c.duplicate("finished", c.ask(c.keyed("k", 1)), first)
		c.conflict("finished, other content", c.ask(c.keyed("k", 2)), first)
	})
	g.run("R11/scopes are apart", func(c *kase) {
		plain := c.fresh("no scope", c.ask(c.keyed("k", 1)))
		scoped := c.fresh("a scope", c.ask(c.keyed("k", 2, pacht.KeyScope("tenant"))))
		c.duplicate("no scope", c.ask(c.keyed("k", 1)), plain)
		c.duplicate("a scope", c.ask(c.keyed("k", 2, pacht.KeyScope("tenant"))), scoped)
		c.fresh("key and scope run together", c.ask(c.keyed("tenantk", 3)))
	})
	g.run("S070/keys are compared byte for byte and bounded", func(c *kase) {
		keys := []string{"k", "K", "k ", " k", "k\n", "k\t", "ż", "z\u0307", "\u00e9", "e\u0301", "💥", "%", "_", "'", `"`, "\\", "ss", "ß", "1", "01", strings.Repeat("k", 512), strings.Repeat("💥", 128)}
		for i, key := range keys {
			c.fresh(fmt.Sprintf("%q", key), c.ask(c.keyed(key, i)))
		}
		for i, key := range keys {
			if a := c.ask(c.keyed(key, i)); !a.Duplicate {
				c.Errorf("%q: %+v", key, a)
			}
		}
		for _, bad := range []string{strings.Repeat("k", 513), strings.Repeat("k", 200_000), "a\x00", "\xff"} {
			var invalid *pacht.InvalidError
			if a := c.ask(c.keyed(bad, 1)); !errors.As(a.Err, &invalid) {
				c.Errorf("a key of %d bytes: %+v", len(bad), a)
			}
		}
	})
	g.run("S067/the same key twice in one batch is stored once", func(c *kase) {
		answers, err := c.Store.Enqueue(c.ctx, []pacht.NewJob{c.keyed("b", 1), c.keyed("a", 1), c.keyed("b", 1), c.new(), c.keyed("b", 2), c.keyed("a", 1, pacht.KeyScope("s"))})
		c.must(err)
		b := c.fresh("first of b", answers[0])
		c.fresh("first of a", answers[1])
		c.duplicate("second of b", answers[2], b)
		c.fresh("without a key", answers[3])
		c.conflict("other content", answers[4], b)
		c.fresh("another scope", answers[5])
		c.same("jobs", c.query("SELECT count(*) FROM {jobs}")[0], "4")
	})
	g.run("S068/of 50 that use one key for different content at once, one is stored and named to the others", func(c *kase) {
		c.contend(func(i int) int { return i }, 49)
	})
	g.run("R11/of 50 that repeat one enqueue at once, one stores it and all learn its job", func(c *kase) {
		c.contend(func(int) int { return 1 }, 0)
	})
	g.run("R11/batches with the same keys in opposite orders do not deadlock", keysOpposite)
	g.run("S020, R11/an expired key is used again only when its job is finished", func(c *kase) {
		first := c.ask(c.keyed("k", 1, pacht.KeyLife(time.Minute))).ID
		held := c.claimID("a", first)
		c.age(time.Hour)
		c.duplicate("the job is silent", c.ask(c.keyed("k", 1)), first)
		c.watch()
		c.conflict("the job was given up", c.ask(c.keyed("k", 2)), first)
		c.must(c.Store.Retry(c.ctx, c.park(first), act))
		c.duplicate("the job waits again", c.ask(c.keyed("k", 1)), first)
		c.close(c.claimID("b", first).Ref(), pacht.OutcomeCompleted)
		second := c.fresh("the job is finished, its key expired", c.ask(c.keyed("k", 2)))
		c.duplicate("the new one", c.ask(c.keyed("k", 2)), second)
		// The first holder wakes at last: that changes neither job.
		c.lost(c.settle(held.Ref(), pacht.OutcomeFailed).Err, held.Ref())
		c.same("first job", c.job(first).Status, pacht.Completed)
		c.same("second job", c.job(second).Status, pacht.Pending)
	})
	g.run("R11/a key that has not expired stands after its job is pruned, and goes when its time has come", func(c *kase) {
		held := c.claimID("a", c.ask(c.keyed("k", 1, pacht.KeyLife(time.Hour))).ID)
		c.close(held.Ref(), pacht.OutcomeCompleted)
		c.prune(pacht.Completed, 1)
		c.duplicate("pruned", c.ask(c.keyed("k", 1)), held.ID)
		c.conflict("pruned, other content", c.ask(c.keyed("k", 2)), held.ID)
		c.age(2 * time.Hour)
		c.prune(pacht.Completed, 0)
		c.same("keys", c.query("SELECT count(*) FROM {keys}")[0], "0")
		c.fresh("expired", c.ask(c.keyed("k", 2)))
	})
	g.run("R11/prune keeps the expired key of an unfinished job", func(c *kase) {
		first := c.ask(c.keyed("k", 1, pacht.KeyLife(time.Minute))).ID
		c.age(time.Hour)
		c.prune(pacht.Completed, 0)
		c.duplicate("unfinished", c.ask(c.keyed("k", 1)), first)
	})
	g.run("R11/the default life of a key is 30 days", func(c *kase) {
		held := c.claimID("a", c.ask(c.keyed("k", 1)).ID)
		c.close(held.Ref(), pacht.OutcomeCompleted)
		c.age(pacht.DefaultKeyLife - time.Hour)
		c.duplicate("within", c.ask(c.keyed("k", 1)), held.ID)
		c.age(2 * time.Hour)
		c.fresh("after", c.ask(c.keyed("k", 1)))
	})
}

// park sets a pending job aside, as an unknown outcome would.
func (c *kase) park(id pacht.ID) pacht.ID {
	c.Helper()
	c.age(time.Hour) // past any backoff
	c.close(c.claimID("parker", id).Ref(), pacht.OutcomeUnknown)
	return id
}

// contend lets 50 goroutines, on two stores, enqueue the same key at once.
func (c *kase) contend(content func(i int) int, wantConflicts int) {
	c.Helper()
	stores := []Store{c.Store, c.Reopen(c.T)}
	const n = 50
	answers, errs := make([]pacht.Enqueued, n), make([]error, n)
	c.together(n, func(i int) {
		got, err := stores[i%2].Enqueue(c.ctx, []pacht.NewJob{c.keyed("k", content(i))})
		if errs[i] = err; err == nil {
			answers[i] = got[0]
		}
	})
	var winner pacht.ID
	fresh, conflicts := 0, 0
	for i, a := range answers {
		c.must(errs[i])
		if a.Err == nil && !a.Duplicate {
			fresh++
			winner = a.ID
		}
	}
	for i, a := range answers {
		switch {
		case a.Err != nil:
			conflicts++
			c.conflict(fmt.Sprint("goroutine ", i), a, winner)
		case a.ID != winner:
			c.Errorf("goroutine %d: job %d, want %d", i, a.ID, winner)
		}
	}
	c.same("stored", fresh, 1)
	c.same("conflicts", conflicts, wantConflicts)
	c.same("jobs", c.query("SELECT count(*) FROM {jobs}")[0], "1")
}

func keysOpposite(c *kase) {
	stores := []Store{c.Store, c.Reopen(c.T)}
	const keys, rounds = 40, 5
	for round := range rounds {
		var fresh [2]int
		c.together(2, func(i int) {
			var jobs []pacht.NewJob
			for k := range keys {
				if i == 1 {
					k = keys - 1 - k
				}
				jobs = append(jobs, c.keyed(fmt.Sprintf("%d-%d", round, k), k))
			}
			answers, err := stores[i].Enqueue(c.ctx, jobs)
			if err != nil {
				c.Errorf("round %d: %v", round, err)
			}
			for _, a := range answers {
				if a.Err != nil {
					c.Errorf("round %d: %v", round, a.Err)
				} else if !a.Duplicate {
					fresh[i]++
				}
			}
		})
		c.same("stored by both", fresh[0]+fresh[1], keys)
	}
}

// together runs n functions that start at one moment, and waits for them all.
func (c *kase) together(n int, fn func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			fn(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
