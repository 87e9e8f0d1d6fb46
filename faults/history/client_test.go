package history

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/netfault"
)

// board is what the clients of a wave know of its jobs: the newest token that anybody saw.
type board struct {
	queue  string
	ids    []pacht.ID
	place  map[pacht.ID]int
	tokens []atomic.Int64
}

func newBoard(queue string, ids []pacht.ID) *board {
	b := &board{queue: queue, ids: ids, place: map[pacht.ID]int{}, tokens: make([]atomic.Int64, len(ids))}
	for i, id := range ids {
		b.place[id] = i
	}
	return b
}

func (b *board) saw(ref pacht.Ref) {
	i, ok := b.place[ref.Job]
	for ok {
		was := b.tokens[i].Load()
		if was >= int64(ref.Token) || b.tokens[i].CompareAndSwap(was, int64(ref.Token)) {
			return
		}
	}
}

// ref is the newest known token of a job, or one before it.
func (b *board) ref(i, stale int) pacht.Ref {
	return pacht.Ref{Job: b.ids[i], Token: pacht.Token(max(0, b.tokens[i].Load()-int64(stale)))}
}

// crowded says that a job has had so many leases that it should be left alone.
func (b *board) crowded(i int) bool { return b.tokens[i].Load() > mostTokens-12 }

// client carries out plans, one after the other.
type client struct {
	name   string
	rec    *Recorder
	draw   *drawer
	proxy  *netfault.Proxy // cuts its connections, or nil
	memory *forgetful      // loses its answers, or nil
	claims int
	last   []pacht.Settlement
}

var never = []byte("\x00no client sends this\x00")

// step carries out one plan, with its fault.
func (c *client) step(ctx context.Context, b *board, p plan) {
	if p.pause > 0 {
		_ = clock.Sleep(ctx, p.pause)
	}
	if p.fault == none || c.proxy == nil && c.memory == nil {
		c.do(ctx, b, p, func() {})
		return
	}
	c.rec.Shaky(true)
	defer c.rec.Shaky(false)
	if c.memory != nil {
		c.memory.next = p.fault
		c.do(ctx, b, p, func() {})
		c.memory.next = none
		return
	}
	// Within a transaction only the answer to its commit may be waited for. Whatever hears
	// nothing for a third of a second is cut: no answer will come that the trap waits for.
	arm, after := func() { c.proxy.CutAnswer(nil, netfault.Committed) }, 300*time.Millisecond
	if p.fault == cut {
		arm, after = func() {}, p.after
	}
	over := make(chan struct{})
	timer := time.AfterFunc(after, func() { c.proxy.Cut(); close(over) })
	if p.verb != "settle tx" {
		arm()
	}
	c.do(ctx, b, p, arm)
	if !timer.Stop() {
		<-over // or it would cut the next step, which counts as undisturbed
	}
	c.proxy.CutAnswer(never, nil)
}

func (c *client) do(ctx context.Context, b *board, p plan, arm func()) {
	job := p.jobs[0]
	act := pacht.Act{By: "op of " + c.name, Reason: "history"}
	switch p.verb {
	case "claim":
		owner := c.owner()
		got, err := c.rec.Claim(ctx, pacht.ClaimRequest{Owner: owner, Queue: b.queue, Kinds: p.kinds, Limit: p.limit})
		c.take(ctx, b, owner, got.Jobs, err)
	case "claim id":
		if b.crowded(job) {
			return
		}
		owner := c.owner()
		got, ok, err := c.rec.ClaimID(ctx, owner, b.ids[job])
		if !ok {
			c.take(ctx, b, owner, nil, err)
			return
		}
		c.take(ctx, b, owner, []pacht.JobInfo{got}, err)
	case "settle":
		c.last = nil
		for _, i := range p.jobs {
			s := p.ends
			s.Ref = b.ref(i, p.stale)
			c.last = append(c.last, s)
		}
		_, _ = c.rec.Settle(ctx, c.last)
	case "again": // a client that did not hear its answer
		if len(c.last) > 0 {
			_, _ = c.rec.Settle(ctx, c.last)
		}
	case "settle tx":
		p.ends.Ref = b.ref(job, p.stale)
		c.settleTx(ctx, p, arm)
	case "renew":
		var refs []pacht.Ref
		for _, i := range p.jobs {
			refs = append(refs, b.ref(i, p.stale))
		}
		_, _ = c.rec.Renew(ctx, refs)
	case "expire":
		_, _ = c.rec.Expire(ctx, pacht.ExpireRequest{By: c.name, Limit: 2 + p.limit, Period: time.Minute, Force: true})
	case "retry":
		_ = c.rec.Retry(ctx, b.ids[job], act)
	case "cancel":
		_, _ = c.rec.Cancel(ctx, b.ids[job], act)
	case "release":
		_, _ = c.rec.Release(ctx, b.ref(job, p.stale), act)
	case "resolve":
		_ = c.rec.Resolve(ctx, b.ref(job, p.stale), pacht.Resolution{Status: p.to}, act)
	case "held":
		got, _ := c.rec.HeldBy(ctx, fmt.Sprint(c.name, "-", c.claims))
		c.learn(b, got.Jobs)
	case "job":
		if got, err := c.rec.Job(ctx, b.ids[job]); err == nil {
			b.saw(got.Ref())
		}
	case "ledger":
		_, _ = c.rec.Attempts(ctx, b.ids[job])
	}
}

// owner is a name that no other claim has.
func (c *client) owner() string {
	c.claims++
	return fmt.Sprint(c.name, "-", c.claims)
}

// take learns what was claimed; without an answer it asks what it holds (R4).
func (c *client) take(ctx context.Context, b *board, owner string, jobs []pacht.JobInfo, err error) {
	if err != nil {
		if got, err := c.rec.HeldBy(ctx, owner); err == nil {
			jobs = got.Jobs
		}
	}
	c.learn(b, jobs)
}

func (c *client) learn(b *board, jobs []pacht.JobInfo) {
	for _, j := range jobs {
		b.saw(j.Ref())
	}
}

func (c *client) settleTx(ctx context.Context, p plan, arm func()) {
	tx, err := c.rec.BeginTx(ctx)
	if err != nil {
		return // no call to the store
	}
	err = tx.SettleTx(ctx, p.ends)
	if p.commit && (err == nil || p.ignore) {
		if err == nil {
			_ = clock.Sleep(ctx, p.after) // the row is locked meanwhile
			arm()
		}
		_ = tx.Commit(ctx)
	}
	_ = tx.Rollback(ctx)
}
