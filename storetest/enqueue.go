package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

func enqueueCases(g *group) {
	g.run("R6, S003, S004/what the enqueue did not say comes from the queue, then the default, and stays in the row", enqueuePrecedence)
	g.run("R12/a refused job names field, value and bound, and stops no other", enqueueRefusals)
	g.run("S073/args arrive byte for byte, through claim, failure, redrive and reading", enqueueExactArgs)
	g.run("S075/args at the limits of size and depth are stored and come back", func(c *kase) {
		deep := json.RawMessage(strings.Repeat("[", pacht.MaxJSONDepth) + strings.Repeat("]", pacht.MaxJSONDepth))
		wide := json.RawMessage(`"` + strings.Repeat("ż", (pacht.MaxArgsBytes-2)/2) + `"`)
		for _, args := range []json.RawMessage{deep, wide} {
			j := c.new()
			j.Args = args
			id := c.enqueue(j)[0]
			if got := c.claimID("a", id).Args; string(got) != string(args) {
				c.Errorf("sent %d bytes, claimed %d", len(args), len(got))
			}
		}
	})
	g.run("any number of jobs is stored in one call, ids grow in the order given", func(c *kase) {
		const n = 2500
		ids := c.many(n)
		for i := 1; i < n; i++ {
			if ids[i] <= ids[i-1] {
				c.Fatalf("id %d comes after %d", ids[i], ids[i-1])
			}
		}
		c.same("leases", c.query("SELECT count(*), min(token), max(attempt) FROM {leases} WHERE status = 'Pending'")[0], fmt.Sprintf("%d|0|0", n))
		answers, err := c.Store.Enqueue(c.ctx, nil)
		if err != nil || len(answers) != 0 {
			c.Errorf("no jobs: %v, %v", answers, err)
		}
	})
	g.run("R2/a job's number is never used again", func(c *kase) {
		held := c.take("a")
		c.close(held.Ref(), pacht.OutcomeCompleted)
		c.prune(pacht.Completed, 1)
		if next := c.one(); next <= held.ID {
			c.Errorf("job %d comes after the deleted job %d", next, held.ID)
		}
	})
	g.run("a new job is Pending, whole and due", func(c *kase) {
		id := c.one()
		j := c.job(id)
		c.same("job", fmt.Sprint(j.Status, j.Attempt, j.MaxAttempts, j.Crashes, j.MaxCrashes, j.Token, j.TTL, j.CrashPolicy, j.Priority, j.LeaseOwner, j.CancelRequested),
			fmt.Sprint(pacht.Pending, 0, 25, 0, 3, pacht.Token(0), time.Minute, pacht.CrashRetry, 3, "", false))
		c.near("created_at", j.CreatedAt, c.now().Add(-5*time.Second))
		c.near("run_at", j.RunAt, j.CreatedAt)
		if !j.ClaimedAt.IsZero() || !j.LeaseUntil.IsZero() || !j.FinishedAt.IsZero() || len(j.Metadata) != 0 {
			c.Errorf("job %+v", j)
		}
		c.same("ledger", len(c.ledger(id)), 0)
	})
	g.run("the default queue is the default", func(c *kase) {
		id := c.enqueue(pacht.NewJob{Kind: "work", Args: json.RawMessage("{}")})[0]
		c.same("queue", c.job(id).Queue, pacht.DefaultQueue)
	})
	g.run("the horizon itself is accepted", func(c *kase) {
		id := c.one(pacht.RunIn(pacht.Horizon))
		c.near("run_at", c.job(id).RunAt, c.now().Add(pacht.Horizon-5*time.Second))
		c.refuseID("a", id)
	})
}

func enqueuePrecedence(c *kase) {
	c.must(c.Store.SetQueue(c.ctx, c.queue, pacht.QueueSettings{TTL: 7 * time.Second, MaxAttempts: 4, MaxCrashes: 2, CrashPolicy: pacht.CrashHold}, act))
	c.must(c.Store.SetQueue(c.ctx, c.queue+"-half", pacht.QueueSettings{TTL: 8 * time.Second}, act))
	byQueue := c.one()
	byOption := c.one(pacht.TTL(time.Second), pacht.MaxAttempts(1), pacht.MaxCrashes(9), pacht.OnCrash(pacht.CrashRetry))
	partly := c.one(pacht.TTL(2 * time.Second))
	half := c.one(pacht.Queue(c.queue + "-half"))
	plain := c.one(pacht.Queue(c.queue + "-plain"))
	kind := c.enqueue(pacht.New(careful{}, pacht.Queue(c.queue)), pacht.New(careful{}, pacht.Queue(c.queue), pacht.MaxAttempts(11)))
	want := map[pacht.ID]string{
		byQueue:  "7s 4 2 hold",
		byOption: "1s 1 9 retry",
		partly:   "2s 4 2 hold",
		half:     "8s 25 3 retry",
		plain:    "1m0s 25 3 retry",
		kind[0]:  "7s 10 2 hold",
		kind[1]:  "7s 11 2 hold",
	}
	c.settings(want)
	// Whoever enqueued before keeps what was in force then.
	c.must(c.Store.SetQueue(c.ctx, c.queue, pacht.QueueSettings{TTL: time.Hour}, act))
	c.settings(want)
	c.settings(map[pacht.ID]string{c.one(): "1h0m0s 25 3 retry"})
	held := c.claimID("a", byOption)
	c.near("lease_until", held.LeaseUntil, held.ClaimedAt.Add(time.Second))
}

// careful is a kind with options of its own.
type careful struct{}

func (careful) Kind() string                   { return "careful" }
func (careful) EnqueueOptions() []pacht.Option { return []pacht.Option{pacht.MaxAttempts(10)} }

func (c *kase) settings(want map[pacht.ID]string) {
	c.Helper()
	for id, text := range want {
		j := c.job(id)
		c.same(fmt.Sprintf("job %d", id), fmt.Sprint(j.TTL, " ", j.MaxAttempts, " ", j.MaxCrashes, " ", j.CrashPolicy), text)
	}
}

func enqueueRefusals(c *kase) {
	change := func(f func(*pacht.NewJob)) pacht.NewJob {
		j := c.new()
		f(&j)
		return j
	}
	batch := []struct {
		field string // "" = accepted
		job   pacht.NewJob
	}{
		{"", c.new()},
		{"kind", change(func(j *pacht.NewJob) { j.Kind = "" })},
		{"args", change(func(j *pacht.NewJob) { j.Args = json.RawMessage(`{"card":"4111"`) })},
		{"args", change(func(j *pacht.NewJob) { j.Args = json.RawMessage(`"\u0000"`) })},
		{"args", change(func(j *pacht.NewJob) { j.Args = json.RawMessage(`"\ud800"`) })},
		{"args", change(func(j *pacht.NewJob) { j.Args = json.RawMessage("\"\x00\"") })},
		{"args", change(func(j *pacht.NewJob) { j.Args = json.RawMessage(strings.Repeat("[", 100_000)) })},
		{"args", change(func(j *pacht.NewJob) {
			j.Args = json.RawMessage(`"` + strings.Repeat("x", pacht.MaxArgsBytes) + `"`)
		})},
		{"", c.new(pacht.Priority(1))},
		{"priority", c.new(pacht.Priority(5))},
		{"max_attempts", c.new(pacht.MaxAttempts(0))},
		{"max_attempts", c.new(pacht.MaxAttempts(-1))},
		{"max_attempts", c.new(pacht.MaxAttempts(1 << 31))},
		{"ttl", c.new(pacht.TTL(time.Millisecond))},
		{"run_at", c.new(pacht.RunAt(time.Now().Add(2 * pacht.Horizon)))},
		{"idempotency key", c.new(pacht.IdempotencyKey("\x00"))},
		{"metadata", c.new(pacht.Metadata("text"))},
		{"", c.new()},
	}
	jobs := make([]pacht.NewJob, len(batch))
	accepted := 0
	for i, b := range batch {
		jobs[i] = b.job
		if b.field == "" {
			accepted++
		}
	}
	answers, err := c.Store.Enqueue(c.ctx, jobs)
	c.must(err)
	if len(answers) != len(batch) {
		c.Fatalf("%d answers to %d jobs", len(answers), len(batch))
	}
	for i, a := range answers {
		var invalid *pacht.InvalidError
		switch {
		case batch[i].field == "" && (a.Err != nil || a.ID == 0):
			c.Errorf("job %d: %v", i, a.Err)
		case batch[i].field == "":
		case !errors.As(a.Err, &invalid) || invalid.Field != batch[i].field || invalid.Bound == "" || a.ID != 0:
			c.Errorf("job %d: %+v, want a refusal of %s", i, a, batch[i].field)
		case strings.Contains(a.Err.Error(), "4111"):
			c.Errorf("the refusal shows args: %v", a.Err)
		}
	}
	c.same("stored", c.query("SELECT (SELECT count(*) FROM {jobs}), (SELECT count(*) FROM {leases})")[0], fmt.Sprintf("%d|%d", accepted, accepted))
	c.same("keys", c.query("SELECT count(*) FROM {keys}")[0], "0")
}

func enqueueExactArgs(c *kase) {
	var jobs []pacht.NewJob
	for _, args := range []string{
		"3889108265204450030", "9007199254740993", "1e400", "-0", "0.1", "1.0", "1E+2", "null",
		`{"id":9007199254740993,"x":1.10}`, `{"b":1,"a":2,"b":3}`, "  [ 1 ,\n\t2 ]  ", `"\u017c\/\ud83d\ude00"`, `"żó💥\u2028"`, `"'; -- $1 ?1 {leases}"`,
	} {
		j := c.new(pacht.MaxAttempts(2))
		j.Args, j.Metadata = json.RawMessage(args), json.RawMessage(`{"m": `+args+`}`)
		jobs = append(jobs, j)
	}
	for i, id := range c.enqueue(jobs...) {
		want := string(jobs[i].Args)
		held := c.claimID("a", id)
		c.same("claimed", string(held.Args), want)
		c.close(held.Ref(), pacht.OutcomeSnoozed)
		c.close(c.claimID("a", id).Ref(), pacht.OutcomeFailed)
		again := c.claimID("a", id)
		byOwner, err := c.Store.HeldBy(c.ctx, "a")
		c.must(err)
		if len(byOwner.Jobs) != 1 || string(byOwner.Jobs[0].Args) != want {
			c.Errorf("held by: %v", byOwner.Jobs)
		}
		c.same("status", c.close(again.Ref(), pacht.OutcomeFailed).Status, pacht.Dead)
		c.same("read when dead", string(c.job(id).Args), want)
		c.must(c.Store.Retry(c.ctx, id, act))
		redriven := c.claimID("a", id)
		c.same("redriven", string(redriven.Args), want)
		c.same("metadata", string(redriven.Metadata), string(jobs[i].Metadata))
		c.close(redriven.Ref(), pacht.OutcomeCompleted)
	}
}

// prune deletes finished jobs of any age, and says how many it found.
func (c *kase) prune(status pacht.Status, want int) {
	c.Helper()
	n, err := c.Store.Prune(c.ctx, pacht.PruneRequest{Status: status, Limit: pacht.MaxBatch})
	c.must(err)
	c.same("pruned", n, want)
}
