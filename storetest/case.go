package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// group is one file's cases on one database.
type group struct {
	*testing.T
	open    func(t *testing.T) Backend
	backend *Backend
	cases   int
}

// run makes one case. Its name begins with the rule or the field case that it defends.
// Emptied tables and a queue of its own isolate it: far cheaper than a database each.
func (g *group) run(name string, fn func(c *kase)) {
	if g.backend == nil {
		b := g.open(g.T)
		g.backend = &b
	}
	g.cases++
	g.T.Run(name, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := &kase{T: t, Backend: *g.backend, ctx: ctx, queue: fmt.Sprintf("q%d", g.cases)}
		defer c.empty()
		fn(c)
		c.check()
	})
}

// alone is run on a database of its own: for cases that change the schema, or fill it.
func (g *group) alone(name string, fn func(c *kase)) {
	g.T.Run(name, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		c := &kase{T: t, Backend: g.open(t), ctx: ctx, queue: "alone"}
		fn(c)
		c.check()
	})
}

// kase is one running case.
type kase struct {
	*testing.T
	Backend
	ctx   context.Context
	queue string
	// tampered says that the case broke rules by hand, so that Check must find something.
	tampered bool
}

// tables lists all that a case can write to.
var tables = []string{"reports", "steps", "attempts", "leases", "keys", "jobs", "audit", "queues", "workers"}

func (c *kase) empty() {
	c.Helper()
	ctx := context.WithoutCancel(c.ctx)
	for _, table := range tables {
		if _, err := c.Exec(ctx, "DELETE FROM "+c.Table(table)); err != nil {
			c.Fatalf("empty %s: %v", table, err)
		}
	}
	for _, text := range []string{"DELETE FROM %s", "INSERT INTO %s DEFAULT VALUES"} {
		if _, err := c.Exec(ctx, fmt.Sprintf(text, c.Table("watch"))); err != nil {
			c.Fatalf("reset the watch: %v", err)
		}
	}
}

func (c *kase) check() {
	c.Helper()
	if c.Failed() {
		return
	}
	found, err := c.Store.Check(c.ctx)
	if err != nil {
		c.Fatalf("check: %v", err)
	}
	if c.tampered {
		if len(found) == 0 {
			c.Error("Check finds nothing wrong in rows that no rule allows")
		}
		return
	}
	for _, v := range found {
		c.Errorf("check: %s, job %d: %s", v.Rule, v.Job, v.Detail)
	}
}

func (c *kase) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// sql runs a statement in which {leases} stands for that table.
func (c *kase) sql(format string, args ...any) int64 {
	c.Helper()
	n, err := c.Exec(c.ctx, c.named(format, args...))
	c.must(err)
	return n
}

// named puts the tables' names in.
func (c *kase) named(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	for _, table := range append(tables, "schema_version", "watch", "job_status", "business") {
		text = strings.ReplaceAll(text, "{"+table+"}", c.Table(table))
	}
	return text
}

// query answers rows as text, one line each.
func (c *kase) query(format string, args ...any) []string {
	c.Helper()
	rows, err := c.Query(c.ctx, c.named(format, args...))
	c.must(err)
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = strings.Join(row, "|")
	}
	return lines
}

// lease is the whole lease row, byte for byte; "" if there is none.
func (c *kase) lease(id pacht.ID) string {
	c.Helper()
	return strings.Join(c.query(`SELECT job_id, token, run_at, claimed_at, lease_until, attempt, max_attempts,
		ttl_ms, rev, crashes, max_crashes, priority, cancel_requested, status, crash_policy, queue, kind, lease_owner
		FROM {leases} WHERE job_id = %d`, id), "\n")
}

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
