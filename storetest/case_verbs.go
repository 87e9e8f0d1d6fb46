package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

// new makes a job of this case's queue.
func (c *kase) new(opts ...pacht.Option) pacht.NewJob {
	return pacht.New(work{}, append([]pacht.Option{pacht.Queue(c.queue)}, opts...)...)
}

// work is the args of most jobs here.
type work struct {
	N int `json:"n"`
}

func (work) Kind() string { return "work" }

// enqueue stores jobs, none of which may be refused.
func (c *kase) enqueue(jobs ...pacht.NewJob) []pacht.ID {
	c.Helper()
	answers, err := c.Store.Enqueue(c.ctx, jobs)
	c.must(err)
	if len(answers) != len(jobs) {
		c.Fatalf("%d answers to %d jobs", len(answers), len(jobs))
	}
	ids := make([]pacht.ID, len(answers))
	for i, a := range answers {
		c.must(a.Err)
		ids[i] = a.ID
	}
	return ids
}

// one enqueues one job.
func (c *kase) one(opts ...pacht.Option) pacht.ID {
	c.Helper()
	return c.enqueue(c.new(opts...))[0]
}

// many enqueues n equal jobs.
func (c *kase) many(n int, opts ...pacht.Option) []pacht.ID {
	c.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = c.new(opts...)
	}
	return c.enqueue(jobs...)
}

func (c *kase) request(owner string, limit int) pacht.ClaimRequest {
	return pacht.ClaimRequest{Owner: owner, Queue: c.queue, Kinds: []string{"work"}, Limit: limit}
}

// claim takes what is due, up to limit.
func (c *kase) claim(owner string, limit int) []pacht.JobInfo {
	c.Helper()
	got, err := c.Store.Claim(c.ctx, c.request(owner, limit))
	c.must(err)
	return got.Jobs
}

// take enqueues one job and claims it.
func (c *kase) take(owner string, opts ...pacht.Option) pacht.JobInfo {
	c.Helper()
	id := c.one(opts...)
	return c.claimID(owner, id)
}

// claimID takes one job, which must be free to take.
func (c *kase) claimID(owner string, id pacht.ID) pacht.JobInfo {
	c.Helper()
	job, ok, err := c.Store.ClaimID(c.ctx, owner, id)
	c.must(err)
	if !ok {
		c.Fatalf("job %d cannot be claimed: %+v", id, c.job(id))
	}
	return job
}

// refuseID asserts that a claim by id takes nothing and is no error.
func (c *kase) refuseID(owner string, id pacht.ID) {
	c.Helper()
	before := c.lease(id)
	job, ok, err := c.Store.ClaimID(c.ctx, owner, id)
	if err != nil || ok || job.ID != 0 {
		c.Errorf("claim by id of job %d: %v, %v, %v; want nothing taken, no error", id, job.Ref(), ok, err)
	}
	c.same("the lease row", c.lease(id), before)
}

// settle closes one lease; the answer's Err is the caller's to look at.
func (c *kase) settle(ref pacht.Ref, outcome pacht.Outcome, change ...func(*pacht.Settlement)) pacht.Settled {
	c.Helper()
	s := pacht.Settlement{Ref: ref, Outcome: outcome}
	for _, f := range change {
		f(&s)
	}
	answers, err := c.Store.Settle(c.ctx, []pacht.Settlement{s})
	c.must(err)
	if len(answers) != 1 || answers[0].Ref != ref {
		c.Fatalf("answers %+v to one settlement of %s", answers, ref)
	}
	return answers[0]
}

// close settles one lease, which must be accepted.
func (c *kase) close(ref pacht.Ref, outcome pacht.Outcome, change ...func(*pacht.Settlement)) pacht.Settled {
	c.Helper()
	s := c.settle(ref, outcome, change...)
	c.must(s.Err)
	return s
}

func (c *kase) job(id pacht.ID) pacht.JobInfo {
	c.Helper()
	j, err := c.Store.Job(c.ctx, id)
	c.must(err)
	return j
}

func (c *kase) ledger(id pacht.ID) []pacht.Attempt {
	c.Helper()
	list, err := c.Store.Attempts(c.ctx, id)
	c.must(err)
	return list
}

// outcomes is the ledger in short: "1 Expired Pending, 2 Completed Completed".
func (c *kase) outcomes(id pacht.ID) string {
	c.Helper()
	var parts []string
	for _, a := range c.ledger(id) {
		parts = append(parts, fmt.Sprintf("%d %s %s", a.Token, a.Outcome, a.NextStatus))
	}
	return strings.Join(parts, ", ")
}

// age lets time pass in the database.
func (c *kase) age(d time.Duration) {
	c.Helper()
	c.must(c.Store.Age(c.ctx, d))
}

// watch makes a pass now.
func (c *kase) watch() pacht.Pass {
	c.Helper()
	p, err := c.Store.Expire(c.ctx, pacht.ExpireRequest{By: "watcher", Limit: pacht.MaxBatch, Period: time.Minute, Force: true})
	c.must(err)
	if !p.Turn {
		c.Fatal("a forced pass did not get its turn")
	}
	return p
}

func (c *kase) now() time.Time {
	c.Helper()
	now, err := c.Store.Now(c.ctx)
	c.must(err)
	return now
}

func (c *kase) same(what string, got, want any) {
	c.Helper()
	if got != want {
		c.Errorf("%s:\n got  %v\n want %v", what, got, want)
	}
}

// near asserts that a stored time is what it should be, give or take the run time of a case
// on a busy machine. Stores keep at least milliseconds.
func (c *kase) near(what string, got, want time.Time) {
	c.Helper()
	if d := got.Sub(want); d < -10*time.Millisecond || d > 20*time.Second {
		c.Errorf("%s: %s, want %s", what, got, want)
	}
}
