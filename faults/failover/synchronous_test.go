package failover

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/netfault"
)

// The primary is gone under load, and the synchronous standby is promoted after a while in which
// it only reads (S025). Two of three worker processes know both hosts, the third an address that
// leads to the standby from then on; those who enqueue know both hosts. Nobody is restarted.
// Nothing that was answered is lost (R4, R11), no lease has two owners (R1, R2), all work is
// done, everybody listens at the new primary (S039). Then the old primary comes back, and nobody
// has fenced it.
func TestSynchronousStandbyTakesOverAndNothingAnsweredIsLost(t *testing.T) {
	t.Parallel()
	gone := map[string]func(*pair) error{"killed": func(p *pair) error { return p.primary.Crash() }}
	if lab.Long() { // a machine that says nothing any more: nothing is refused, all waits
		gone["frozen"] = func(p *pair) error { return p.primary.Freeze() }
	}
	for name, leave := range gone {
		t.Run(name, func(t *testing.T) { takeOver(t, name, leave) })
	}
}

func takeOver(t *testing.T, how string, leave func(*pair) error) {
	p := startPair(t, true)
	rec := lab.StartRecorder(t)
	address := netfault.New(t, p.primary.Addr())
	moving := "postgres://postgres@" + address.Addr() + "/" + named + "?sslmode=disable"
	handler := lab.Handler{
		Seed: lab.Seed(t), Duration: 20 * time.Millisecond, Long: 0.02, LongFor: 400 * time.Millisecond,
		Tx: 0.2, RepeatTx: true, Tell: true,
	}
	if how == "frozen" {
		handler.Tx = 0 // on a pool of the service's own, without a time-out, such a handler waits for ever: docs/operating.md
	}
	pairs := lab.StartFleet(t, lab.FleetConfig{Database: p.both, Recorder: rec, Processes: 2, Handler: handler})
	single := lab.StartFleet(t, lab.FleetConfig{Database: moving, Recorder: rec, Processes: 1, Handler: handler})
	callers := gather(t, p.both, 6)
	n := lab.Scale(600, 5000)
	callers.more(n, "")
	lab.Await(t, 120*time.Second, "a third is enqueued and work is done", func() bool {
		return callers.answered() > n/3 && rec.Count(lab.Settled) > n/6
	})

	if err := leave(p); err != nil {
		t.Fatal(err)
	}
	moment := time.Now()
	address.Lead(p.standby.Addr())
	recovering := time.Duration(lab.Scale(1, 6)) * time.Second
	// What people can still read is old, and nothing can be written.
	reader := lab.Open(t, p.standby.URL(named))
	lab.Await(t, recovering+time.Second, "the time in recovery is over", func() bool {
		_, err := reader.Claim(t.Context(), pacht.ClaimRequest{Owner: "nobody", Queue: pacht.DefaultQueue, Kinds: []string{"work"}, Limit: 1})
		if err == nil {
			t.Fatal("a server in recovery gave out work")
		}
		_ = clock.Sleep(t.Context(), 100*time.Millisecond)
		return time.Since(moment) > recovering
	})
	if err := p.standby.Server.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	callers.done(90 * time.Second)
	pairs.Finish(90 * time.Second)
	lab.Await(t, 30*time.Second, "all three listen at the new primary", func() bool {
		return ask[int](t, p.standby.URL(named), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'") == 3
	})

	here := p.standby.URL(named)
	facts := append(interruption(t, here, moment),
		lab.F("recovering", promoted.Sub(moment).Round(time.Millisecond)),
		lab.F("enqueues_answered", len(callers.answers)), lab.F("enqueues_unknown", callers.unknown), lab.F("enqueues_repeated", callers.again))
	facts = append(facts, lab.F("held_leases_closed_after", freed(t, here, how, moment, promoted)))
	outages := []lab.Outage{{From: moment, Until: promoted}, returns(t, p, how, callers, pairs)}
	pairs.Shutdown()
	single.Shutdown()

	stored(t, here, callers)
	completed(t, here, rec)
	account := lab.Audit(t, here, rec, lab.AuditOptions{Outages: outages, Fleets: []*lab.Fleet{pairs, single}})
	lab.Report(t, "synchronous standby promoted, primary "+how, append(facts, account.Facts()...)...)
}

// freed is how long after the promotion the last lease was closed that was held at the fault: by
// its holder or, at its end, by a watcher (S025).
func freed(t *testing.T, url, how string, moment, promoted time.Time) time.Duration {
	t.Helper()
	open := ask[int](t, url, "SELECT count(*) FROM pacht.leases WHERE status = 'Processing' AND claimed_at < $1", moment)
	last := ask[*time.Time](t, url, "SELECT max(ended_at) FROM pacht.attempts WHERE claimed_at < $1 AND ended_at >= $1", moment)
	if open > 0 || last == nil {
		t.Fatalf("%d leases are held since before the fault; the last was closed at %v", open, last)
	}
	after := last.Sub(promoted).Round(time.Millisecond)
	// The TTL, and what a watcher waits after an outage before it looks; calls to a host that says
	// nothing have to end first.
	most := ttl + 5*time.Second
	if how == "frozen" {
		most = ttl + 20*time.Second
	}
	if after > most {
		t.Errorf("a lease that was held at the fault was closed %s after the promotion, want at most %s", after, most)
	}
	return after
}

// stored: every enqueue that was answered is there, under the number that it was answered for,
// and once.
func stored(t *testing.T, url string, c *crowd) {
	t.Helper()
	numbers, times := map[pacht.ID]int{}, map[int]int{}
	read(t, url, func(rows pgx.Rows) error {
		var id pacht.ID
		var number int
		err := rows.Scan(&id, &number)
		numbers[id] = number
		times[number]++
		return err
	}, "SELECT job_id, (args->>'n')::bigint FROM pacht.jobs")
	for number, id := range c.answers {
		if got, ok := numbers[id]; !ok || got != number {
			t.Errorf("job %d was answered for number %d, and is not there (%d, %t)", id, number, got, ok)
		}
	}
	for number, n := range times {
		if n > 1 {
			t.Errorf("number %d is stored %d times", number, n)
		}
	}
	if len(times) > len(c.answers)+c.unknown {
		t.Errorf("%d are stored, %d were answered and %d unknown", len(times), len(c.answers), c.unknown)
	}
}

// completed: every completion that a worker was told of is in the ledger.
func completed(t *testing.T, url string, rec *lab.Recorder) {
	t.Helper()
	ledger := map[pacht.Ref]bool{}
	read(t, url, func(rows pgx.Rows) error {
		var ref pacht.Ref
		err := rows.Scan(&ref.Job, &ref.Token)
		ledger[ref] = true
		return err
	}, "SELECT job_id, token FROM pacht.attempts WHERE outcome = 'Completed'")
	for _, e := range rec.Events() {
		if e.What == lab.Settled && !ledger[e.Ref] {
			t.Errorf("the completion of %s was answered to %s, and is not there", e.Ref, e.Owner)
		}
	}
}

// returns starts the old primary again beside the promoted one, where nobody fences it, and cuts
// all connections to the promoted one, so that all must choose. Who has seen the promoted server
// stays with it, although the old one stands first in the URL and says that it takes writes. A new
// process cannot know. The old one still waits for its synchronous standby, and so answers no
// write: that much of a fence it has by itself.
func returns(t *testing.T, p *pair, how string, callers *crowd, fleet *lab.Fleet) (cut lab.Outage) {
	t.Helper()
	if how == "frozen" {
		if err := p.primary.Thaw(); err != nil {
			t.Fatal(err)
		}
	} else if err := p.primary.Server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.primary.Server.Kill(); err != nil {
			t.Error(err)
		}
	}()
	old, here := p.primary.URL(named), p.standby.URL(named)
	there := ask[int](t, old, "SELECT count(*) FROM pacht.jobs")
	back := time.Now()
	lab.Exec(t, p.standby.URL("postgres"), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+named+"'")
	cut = lab.Outage{From: back, Until: time.Now()}
	before, more := ask[int](t, here, "SELECT count(*) FROM pacht.jobs"), lab.Scale(100, 1000)
	callers.more(callers.most+more, "nil") // without a business transaction: that is on a pool of the service's own
	callers.done(30 * time.Second)
	fleet.Finish(30 * time.Second)
	if got := ask[int](t, here, "SELECT count(*) FROM pacht.jobs"); got < before+more-callers.unknown {
		t.Errorf("%d jobs at the promoted server, want %d", got, before+more)
	}
	if got := ask[int](t, old, "SELECT count(*) FROM pacht.jobs"); got != there {
		t.Errorf("%d jobs at the old primary, and %d when it came back", got, there)
	}
	if n := ask[int](t, old, "SELECT count(*) FROM pacht.leases WHERE claimed_at > $1", back); n > 0 {
		t.Errorf("%d leases were taken at the old primary", n)
	}
	fresh := lab.Open(t, p.both)
	lab.Await(t, 60*time.Second, "the enqueue of a new process stands at the old primary", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := fresh.Enqueue(ctx, []pacht.NewJob{pacht.New(lab.Work{N: -1}, pacht.IdempotencyKey("new process"))}); err == nil {
			t.Fatal("the old primary has answered an enqueue, and no standby has it")
		}
		return ask[int](t, old, "SELECT count(*) FROM pacht.jobs WHERE args->>'n' = '-1'") == 1
	})
	return cut
}
