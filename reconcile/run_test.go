package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
	"github.com/pacht-queue/pacht/worker"
)

// until polls for something that must come true.
func (b *bank) until(what string, true func() bool) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); !true(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("it did not come to that: %s", what)
		}
	}
}

// Two processes each enqueue and make the passes: each period's is enqueued once, payments are
// healed by it, and a pass that somebody took and never came back from stops no later one.
func TestPassesAreJobsThatAnyNumberOfProcessesEnqueueOnce(t *testing.T) {
	onBoth(t, func(b *bank) {
		quick := func(c *reconcile.Config) {
			c.Period, c.SlowPeriod, c.ListPeriod = 200*time.Millisecond, time.Hour, time.Hour
			c.Logger = slog.New(slog.DiscardHandler)
			c.Theirs = &listing{provider: b.psp}
		}
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		end := func() { stop(); running.Wait() }
		defer end()
		for i, store := range []database{b.store, b.again()} {
			r := b.reconciler(quick, func(c *reconcile.Config) { c.Store = store })
			running.Go(func() {
				if err := r.Run(ctx); err != nil {
					b.Error(err)
				}
			})
			if i == 0 {
				// The first pass is taken by a process that dies with it.
				b.until("a pass", func() bool {
					claims, err := b.store.Claim(b.Context(), pacht.ClaimRequest{Owner: "dead", Queue: pacht.DefaultQueue, Kinds: []string{"pacht.reconcile"}, Limit: 1})
					must(b, err)
					return len(claims.Jobs) == 1
				})
			}
			w, err := worker.New(store, worker.Config{
				Queues: map[string]int{pacht.DefaultQueue: 2}, Handlers: []worker.Handler{worker.Handle(r.Handle)},
				Poll: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			})
			must(b, err)
			running.Go(func() {
				if err := w.Run(ctx); err != nil {
					b.Error(err)
				}
			})
		}
		for round := range 2 {
			ref := fmt.Sprint("p", round)
			b.add(ref, reconcile.Pending, time.Hour)
			b.psp.has(ref, reconcile.Succeeded)
			b.until(ref+" is paid", func() bool { return b.state(ref) == "succeeded|0" })
		}
		end()
		b.same("credits", b.credits(), "2")
		twice := b.rows("SELECT args, count(*) FROM (SELECT CAST(args AS text) AS args FROM " + b.table("jobs") + " WHERE kind = 'pacht.reconcile') AS p GROUP BY args HAVING count(*) > 1")
		b.same("passes that were enqueued twice", twice, "")
		lanes := b.rows("SELECT count(*) FROM " + b.table("keys") + " WHERE key LIKE 'settled:%' OR key LIKE 'list:%'")
		b.same("slow passes", lanes, "2")
	})
}

// While one pass is made, the next over the same lane has nothing to do, unless the first has
// been at it for so long that it may be stuck.
func TestPassStandsBackForOneThatIsUnderWay(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		b.psp.has("p1", reconcile.Succeeded)
		r := b.reconciler()
		passes := make([]*pacht.Job[reconcile.Pass], 3)
		claim := func(i int, lane reconcile.Lane) {
			answers, err := b.store.Enqueue(b.Context(), []pacht.NewJob{pacht.New(reconcile.Pass{Lane: lane})})
			must(b, err)
			info, ok, err := b.store.ClaimID(b.Context(), fmt.Sprint("owner ", i), answers[0].ID)
			if err != nil || !ok {
				b.Fatalf("claim: %v, %v", ok, err)
			}
			passes[i] = &pacht.Job[reconcile.Pass]{Held: pacht.NewHeld(info, &keeper{}), Args: reconcile.Pass{Lane: lane}}
		}
		claim(0, reconcile.LanePending)
		claim(1, reconcile.LanePending)
		must(b, r.Handle(b.Context(), passes[1]))
		b.same("while it is under way", b.state("p1"), "pending|0")
		b.exec("UPDATE " + b.table("leases") + " SET claimed_at = " + map[bool]string{true: "claimed_at - interval '1 hour'", false: "claimed_at - 3600000"}[b.table("x") == "pacht.x"] + " WHERE lease_owner = 'owner 0'")
		must(b, r.Handle(b.Context(), passes[1]))
		b.same("when it may be stuck", b.state("p1"), "succeeded|0")
		claim(2, "no lane")
		if err := r.Handle(b.Context(), passes[2]); err == nil || !pacht.Classed(err) {
			b.Errorf("a lane that is none: %v", err)
		}
	})
}

// keeper is a lease without a worker.
type keeper struct{ pacht.Keeper }

func (*keeper) SetOutput(json.RawMessage) error { return nil }
