package kill

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/internal/failpoint/scan"
)

const ttl = time.Second

// pointsOf are the failpoints that a worker on this database can pass. Those of who enqueues, and
// those of effects, sweeps and heals, have tests of their own.
func pointsOf(t *testing.T, url string) (names []string) {
	t.Helper()
	store := "postgres"
	if database.IsSQLite(url) {
		store = "sqlite"
	}
	points, err := scan.Points(os.DirFS("../.."), "worker", "watch", store)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if !slices.Contains(callerPoints, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// R4, R5, S016, S022, S026, S046: a process is killed in every named point between claim and
// settle, in the passes of its watcher, inside the transactions of its store and in each part of
// its stop. Nothing is lost, nothing is done twice, and each attempt that was counted and not
// begun is explained. A point at which no process could be killed fails the test. The short form
// draws some of the points.
func TestKillInEveryPointLosesNothing(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		inPoints(t, url, "kill", 6)
	})
}

// R4, R7, S011, S013, S015: a process is stopped in such a point until its leases are over and others
// have its jobs, and goes on there: a watcher in the middle of its pass, an answer that was sent and not
// read, an adopter that knows what it holds and has not begun it.
func TestStopInEveryPointLosesNothing(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		inPoints(t, url, "stop", 3)
	})
}

// inPoints kills or stops processes in each point, in short in so many, and compares the account
// afterwards.
func inPoints(t *testing.T, url, action string, short int) {
	seed := lab.Seed(t)
	points := lab.Draw(t, seed, short, pointsOf(t, url))
	p := &pointed{
		T: t, url: url, action: action, rec: lab.StartRecorder(t), hit: map[string]int{},
	}
	const victims = 3
	p.fleet = lab.StartFleet(t, lab.FleetConfig{
		Database: url, Recorder: p.rec, Processes: 1 + victims, Slots: 4, Grace: 500 * time.Millisecond, Unwind: 200 * time.Millisecond,
		Handler: lab.Handler{
			Seed: seed, Duration: 20 * time.Millisecond, Long: 0.15, LongFor: 600 * time.Millisecond,
			Tx: 0.4, Fail: 0.03, Ensure: true, RepeatTx: true,
		},
	})
	work := make(chan string)
	go func() {
		defer close(work)
		for _, name := range points {
			work <- name
		}
	}()
	var all sync.WaitGroup
	fed := feed(t, p.fleet.Store(), 40)
	for v := 1; v <= victims; v++ {
		all.Go(func() {
			chance := clock.Seeded(seed, "victim", fmt.Sprint(v))
			for name := range work {
				p.strike(v, name, chance)
			}
		})
	}
	all.Wait()
	jobs := fed.stop()
	p.fleet.Revive()
	p.fleet.Finish(60 * time.Second)
	p.fleet.Shutdown()
	for _, name := range points {
		if p.hit[name] == 0 {
			t.Errorf("no process met a %s in %s", action, name)
		}
	}
	a := lab.Audit(t, url, p.rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{p.fleet}})
	lab.Report(t, action+" in every point", append([]lab.Fact{lab.F("points", len(points)), lab.F(action+"s", p.hits())}, a.Facts()...)...)
}

// pointed is one run of the test.
type pointed struct {
	*testing.T
	url    string
	action string
	rec    *lab.Recorder
	fleet  *lab.Fleet

	mu    sync.Mutex
	hit   map[string]int
	moved sync.Mutex // the table of leases is away: one at a time
}

func (p *pointed) hits() (n int) {
	for _, of := range p.hit {
		n += of
	}
	return n
}

// strike has a process die or stand still in a point, and notes that it did.
func (p *pointed) strike(v int, name string, chance *rand.Rand) {
	at := 1
	switch {
	case strings.HasPrefix(name, "postgres.sent"), strings.HasPrefix(name, "postgres.answered"), strings.HasPrefix(name, "sqlite.") && name != "sqlite.tx.closed":
		at = 3 + chance.IntN(20) // of every verb, and so of one that chance picks
	case strings.HasPrefix(name, "worker.claim"), name == "worker.begun", name == "worker.handle", strings.HasPrefix(name, "worker.settle"):
		at = 1 + chance.IntN(4)
	}
	p.fleet.Restart(v, fmt.Sprintf("PACHT_FAILPOINT=%s=%s@%d", name, p.action, at))
	l := p.fleet.Life(v)
	if p.Failed() {
		return
	}
	switch {
	case strings.HasPrefix(name, "worker.stop."), name == "worker.leave":
		lab.Within(10*time.Second, func() bool { // a stop with something in hand says more
			held, err := p.fleet.Store().HeldBy(p.Context(), l.Owner)
			return err == nil && len(held.Jobs) > 0
		})
		p.fleet.Terminate(v)
	case strings.HasPrefix(name, "worker.adopt."):
		p.disturb(l)
	}
	if !lab.Within(20*time.Second, func() bool { return l.Ended() || l.Frozen() }) {
		p.Errorf("%s was not passed %d times within 20s", name, at)
		return
	}
	if p.action == "stop" {
		time.Sleep(ttl + ttl/2) // this is the stop
		p.fleet.Thaw(v)
		lab.Within(ttl/2, l.Ended) // it goes on for a while, or ends as it was asked to
	} else if _, killed, err := l.Wait(time.Second); err != nil || !killed {
		p.Errorf("%s: killed %t, %v%s", name, killed, err, l.LastWords())
		return
	}
	if len(l.Hits()) != 1 {
		p.Errorf("%s: hits %v%s", name, l.Hits(), l.LastWords())
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hit[name]++
}

// disturb makes claims fail until the process has ended: the table of leases is away for a
// moment, again and again.
func (p *pointed) disturb(l *lab.Life) {
	p.moved.Lock()
	defer p.moved.Unlock()
	leases := lab.Table(p, p.url, "leases")
	away, back := "leases_away", "leases"
	moved := lab.Table(p, p.url, away)
	if database.IsSQLite(p.url) {
		away, back = moved, leases
	}
	lab.Within(40*time.Second, func() bool { // a worker that asks in vain asks less and less often
		lab.Exec(p, p.url, "ALTER TABLE "+leases+" RENAME TO "+away)
		lab.Within(200*time.Millisecond, func() bool { return l.Ended() || l.Frozen() })
		lab.Exec(p, p.url, "ALTER TABLE "+moved+" RENAME TO "+back)
		return lab.Within(400*time.Millisecond, func() bool { return l.Ended() || l.Frozen() })
	})
}
