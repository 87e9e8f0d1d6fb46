package net_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/worker"
)

// split gives the calls of a worker that belong to one role a store of their own, and with it
// connections of their own: so the network of one role can be broken.
type split struct {
	pacht.Store // all other calls

	claims, renewals, settles, listens pacht.Store
}

func whole(s pacht.Store) split {
	return split{Store: s, claims: s, renewals: s, settles: s, listens: s}
}

func (s split) Claim(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
	return s.claims.Claim(ctx, req)
}

func (s split) HeldBy(ctx context.Context, owner string) (pacht.Claims, error) {
	return s.claims.HeldBy(ctx, owner)
}

func (s split) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	return s.renewals.Renew(ctx, refs)
}

func (s split) Settle(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
	return s.settles.Settle(ctx, batch)
}

func (s split) Listen(ctx context.Context, owner string, l pacht.Listener) error {
	return s.listens.Listen(ctx, owner, l)
}

// stage is one role, broken in one way.
type stage struct {
	*testing.T
	queue  string
	base   *postgres.Store // reaches the database whatever happens
	sick   *postgres.Store // goes through the proxy
	proxy  *proxy
	plague string
	mild   bool // slow, and nothing is lost
	seen   crew.Runs
}

// strike breaks the role for so long, and then heals it. Silence lasts longer: long enough for
// the store to find out by itself that nobody answers.
func (s *stage) strike(d time.Duration) {
	if s.plague == "silent" {
		d = max(d, 4500*time.Millisecond)
	}
	plagues[s.plague](s.proxy)
	time.Sleep(d) // the outage itself
	s.proxy.heal()
}

// met fails the test if the fault never showed: then nothing was proved.
func (s *stage) met(w *crew.Running) {
	s.Helper()
	if w.Status().Errors == 0 && !s.mild {
		s.Error("no call of the worker failed: nothing was proved")
	}
	lab.Await(s, 20*time.Second, "the worker is healthy again", func() bool { return w.Status().Unreachable == nil })
}

// S012, S022, S041, S042: the connections of one role of a worker are cut, delayed, silent,
// ended in the middle of a message, while the others work.
func TestOutageOfOneRoleOfConnectionsLosesNothing(t *testing.T) {
	t.Parallel()
	roles := map[string]func(*stage){"claim": claimsFail, "renew": renewalsFail, "settle": settlesFail, "listen": listenFails}
	for role, play := range roles {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			url, base := crew.Database(t)
			t.Cleanup(func() { crew.Checked(t, base) }) // after all that runs in it
			for plague := range plagues {
				// In short: what differs most. Each new connection costs the server some 30 ms of CPU.
				// A connection to listen on that is silent is found out after half a minute only.
				if short := map[string]string{"claim": "halved", "renew": "silent", "settle": "silent", "listen": "cut"}; !lab.Long() && plague != short[role] {
					continue
				}
				t.Run(plague, func(t *testing.T) {
					t.Parallel()
					p := newProxy(t, url)
					play(&stage{
						T: t, queue: plague, base: base, proxy: p, plague: plague,
						mild: plague == "delayed" || plague == "crumbs",
						sick: crew.Open(t, p.url, postgres.Config{StatementTimeout: 500 * time.Millisecond}),
					})
				})
			}
		})
	}
}

// claimsFail: what was claimed and never answered is adopted, or given back with its attempt.
// Nothing waits for the end of its lease, which is a minute off (R4).
func claimsFail(s *stage) {
	ids := crew.EnqueueTasks(s, s.base, slices.Repeat([]crew.Task{{Ms: 20}}, 80), pacht.Queue(s.queue))
	parts := whole(s.base)
	parts.claims = s.sick
	w := crew.Start(s, parts, crew.Config(s.queue, 4, s.seen.Handle))
	lab.Await(s, 20*time.Second, "work has begun", func() bool { return len(s.seen.Of(ids[0])) > 0 })
	for range 3 {
		s.strike(400 * time.Millisecond)
		if s.plague == "silent" {
			break // once is long enough
		}
		time.Sleep(100 * time.Millisecond) // a claim or two
	}
	crew.Finished(s, s.base, 40*time.Second, s.queue)
	s.met(w)
	if got := crew.Outcomes(s, s.base, ids); got[pacht.OutcomeCompleted] != len(ids) || got[pacht.OutcomeExpired] > 0 || got[pacht.OutcomeFailed] > 0 {
		s.Errorf("leases ended as %v", got)
	}
	s.seen.Alone(s.T)
}

// renewalsFail: the holder stops its handlers before their leases end, and nobody runs beside
// it (R8); it takes nothing that it could not keep, and goes on by itself (S012).
func renewalsFail(s *stage) {
	const ttl = 4 * time.Second
	ids := crew.EnqueueTasks(s, s.base, slices.Repeat([]crew.Task{{Ms: 5500}}, 4), pacht.Queue(s.queue), pacht.TTL(ttl))
	parts := whole(s.base)
	parts.renewals = s.sick
	holder := crew.Start(s, parts, crew.Config(s.queue, 4, s.seen.Handle))
	lab.Await(s, 20*time.Second, "all are held", func() bool { return holder.Status().Held == 4 })
	other := crew.Start(s, s.base, crew.Config(s.queue, 4, s.seen.Handle))
	s.strike(5 * time.Second)
	crew.Finished(s, s.base, 40*time.Second, s.queue)
	s.met(holder)
	s.seen.Alone(s.T)
	got := crew.Outcomes(s, s.base, ids)
	// What the deposed handlers answer goes through, with the attempt given back, unless the
	// machine is so busy that a watcher comes first.
	if (s.plague == "cut" || s.plague == "silent") && got[pacht.OutcomeFailed] == 0 {
		s.Errorf("no deposed holder gave its attempt back: %v", got)
	}
	for _, id := range ids {
		first := s.seen.Of(id)[0]
		switch {
		case s.mild:
			if first.Cause != nil {
				s.Errorf("job %d was stopped by nothing but slowness: %v", id, first.Cause)
			}
		case first.Cause == nil && (s.plague == "halved" || s.plague == "torn"):
			// An answer is short: a new connection lets one through before it ends.
		case !errors.Is(first.Cause, pacht.ErrLeaseLost) || first.Left <= 0:
			s.Errorf("job %d: its holder stopped because of %v, with %s of the lease left", id, first.Cause, first.Left)
		}
	}
	if err := other.End(); err != nil {
		s.Errorf("the other: %v", err)
	}
	more := crew.Enqueue(s, s.base, 2, pacht.Queue(s.queue), pacht.TTL(ttl))
	crew.Finished(s, s.base, 20*time.Second, s.queue)
	crew.Outcomes(s, s.base, more)
}

// settlesFail: outcomes are offered until they are answered, and their leases renewed as long
// (S022), so that no job runs twice though the outage is longer than the lease.
func settlesFail(s *stage) {
	const ttl = 4 * time.Second
	ids := crew.EnqueueTasks(s, s.base, slices.Repeat([]crew.Task{{Ms: 20}}, 60), pacht.Queue(s.queue), pacht.TTL(ttl))
	parts := whole(s.base)
	parts.settles = s.sick
	holder := crew.Start(s, parts, crew.Config(s.queue, 4, s.seen.Handle))
	lab.Await(s, 20*time.Second, "work has begun", func() bool { return len(s.seen.Of(ids[0])) > 0 })
	crew.Start(s, s.base, crew.Config(s.queue, 1, s.seen.Handle))
	s.strike(6 * time.Second)
	crew.Finished(s, s.base, 40*time.Second, s.queue)
	s.met(holder)
	if got := crew.Outcomes(s, s.base, ids); got[pacht.OutcomeCompleted] != len(ids) || len(got) != 1 {
		s.Errorf("leases ended as %v", got)
	}
	s.seen.Once(s, ids)
}

// listenFails: notices are an accelerator. Jobs are found by polling meanwhile, and afterwards the
// worker listens again (S039, S041).
func listenFails(s *stage) {
	parts := whole(s.base)
	parts.listens = s.sick
	cfg := crew.Config(s.queue, 4, s.seen.Handle)
	cfg.Poll = 200 * time.Millisecond
	w := crew.Start(s, parts, cfg)
	lab.Await(s, 20*time.Second, "notices arrive", func() bool { return w.Status().Listening })
	plagues[s.plague](s.proxy)
	broken := s.plague == "cut" || s.plague == "silent" // the others strike with what is sent, and hardly anything is
	for range 3 {
		ids := crew.Enqueue(s, s.base, 3, pacht.Queue(s.queue))
		crew.Finished(s, s.base, 10*time.Second, s.queue)
		crew.Outcomes(s, s.base, ids)
	}
	if broken {
		lab.Await(s, 60*time.Second, "the worker knows that it does not listen", func() bool { return !w.Status().Listening })
	}
	s.proxy.heal()
	lab.Await(s, 90*time.Second, "it listens again", func() bool { return w.Status().Listening })
}

// R1, R4, R8: all roles of two workers are broken at once, each in another way all the time.
func TestMixedFaultsOfAllRolesLoseNothingAndRunNothingTwiceAtOnce(t *testing.T) {
	t.Parallel()
	url, base := crew.Database(t)
	seed := lab.Seed(t)
	const queue = "mixed"
	jobs := lab.Scale(80, 3000)
	tasks := make([]crew.Task, jobs)
	chance := clock.Seeded(seed, "tasks")
	for i := range tasks {
		tasks[i].Ms = chance.IntN(60)
	}
	ids := crew.EnqueueTasks(t, base, tasks, pacht.Queue(queue), pacht.TTL(6*time.Second))
	var seen crew.Runs
	var proxies []*proxy
	var workers []*crew.Running
	sick := func() pacht.Store {
		p := newProxy(t, url)
		proxies = append(proxies, p)
		return crew.Open(t, p.url, postgres.Config{StatementTimeout: 500 * time.Millisecond})
	}
	for range 2 {
		parts := split{Store: base, claims: sick(), renewals: sick(), settles: sick(), listens: base}
		workers = append(workers, crew.Start(t, parts, crew.Config(queue, 4, seen.Handle)))
	}
	names := []string{"cut", "silent", "halved", "torn", "delayed", "crumbs"}
	chance = clock.Seeded(seed, "plagues")
	var story []string
	end := time.Now().Add(time.Duration(lab.Scale(3, 25)) * time.Second)
	for time.Now().Before(end) {
		p, name := proxies[chance.IntN(len(proxies))], names[chance.IntN(len(names))]
		p.heal()
		plagues[name](p)
		story = append(story, fmt.Sprint(name))
		time.Sleep(time.Duration(50+chance.IntN(200)) * time.Millisecond) // the outage itself
		if chance.IntN(2) == 0 {
			proxies[chance.IntN(len(proxies))].heal()
		}
	}
	for _, p := range proxies {
		p.heal()
	}
	crew.Finished(t, base, 60*time.Second, queue)
	seen.Alone(t)
	got := crew.Outcomes(t, base, ids)
	if got[pacht.OutcomeCompleted] != jobs {
		t.Errorf("leases ended as %v", got)
	}
	crew.Checked(t, base)
	failed := int64(0)
	for _, w := range workers {
		failed += w.Status().Errors
	}
	if failed == 0 {
		t.Error("no call failed: nothing was proved")
	}
	lab.Report(t, "net/mixed", lab.F("jobs", jobs), lab.F("faults", len(story)), lab.F("failed calls", failed), lab.F("expired", got[pacht.OutcomeExpired]))
	var unfinished *worker.UnfinishedError
	for _, w := range workers {
		if err := w.End(); err != nil && !errors.As(err, &unfinished) {
			t.Errorf("worker: %v", err)
		}
	}
}
