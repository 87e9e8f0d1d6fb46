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
// begun is explained. A point at which no process could be killed fails the test.
func TestKillInEveryPointLosesNothing(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		seed := lab.Seed(t)
		p := &pointed{
			T: t, url: url, rec: lab.StartRecorder(t), hit: map[string]int{},
		}
		const victims = 3
		p.fleet = lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: p.rec, Processes: 1 + victims, Slots: 4, Grace: 500 * time.Millisecond, Unwind: 200 * time.Millisecond,
			Handler: lab.Handler{
				Seed: seed, Duration: 20 * time.Millisecond, Long: 0.15, LongFor: 600 * time.Millisecond,
				Tx: 0.4, Fail: 0.03, Ensure: true, RepeatTx: true,
			},
		})
		points := pointsOf(t, url)
		work := make(chan string)
		go func() {
			defer close(work)
			for range lab.Scale(1, 5) {
				for _, name := range points {
					work <- name
				}
			}
		}()
		var all sync.WaitGroup
		fed := feed(t, p.fleet.Store(), 40, 1<<30)
		for v := 1; v <= victims; v++ {
			all.Go(func() {
				chance := clock.Seeded(seed, "victim", fmt.Sprint(v))
				for name := range work {
					p.kill(v, name, chance)
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
				t.Errorf("no process was killed in %s", name)
			}
		}
		a := lab.Audit(t, url, p.rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{p.fleet}})
		lab.Report(t, "killed in every point", append([]lab.Fact{lab.F("points", len(points)), lab.F("kills", p.kills())}, a.Facts()...)...)
	})
}

// pointed is one run of the test.
type pointed struct {
	*testing.T
	url   string
	rec   *lab.Recorder
	fleet *lab.Fleet

	mu    sync.Mutex
	hit   map[string]int
	moved sync.Mutex // the table of leases is away: one at a time
}

func (p *pointed) kills() (n int) {
	for _, of := range p.hit {
		n += of
	}
	return n
}

// kill has a process die in a point, and notes that it did.
func (p *pointed) kill(v int, name string, chance *rand.Rand) {
	at := 1
	switch {
	case strings.HasPrefix(name, "postgres.sent"), strings.HasPrefix(name, "postgres.answered"), strings.HasPrefix(name, "sqlite.") && name != "sqlite.tx.closed":
		at = 3 + chance.IntN(20) // of every verb, and so of one that chance picks
	case strings.HasPrefix(name, "worker.claim"), name == "worker.begun", name == "worker.handle", strings.HasPrefix(name, "worker.settle"):
		at = 1 + chance.IntN(4)
	}
	p.fleet.Restart(v, fmt.Sprintf("PACHT_FAILPOINT=%s=kill@%d", name, at))
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
	if !lab.Within(20*time.Second, l.Ended) {
		p.Errorf("%s was not passed %d times within 20s", name, at)
		return
	}
	_, killed, err := l.Wait(time.Second)
	if err != nil || !killed || len(l.Hits()) != 1 {
		p.Errorf("%s: killed %t, %v, hits %v%s", name, killed, err, l.Hits(), l.LastWords())
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
	lab.Within(15*time.Second, func() bool {
		lab.Exec(p, p.url, "ALTER TABLE "+leases+" RENAME TO "+away)
		lab.Within(200*time.Millisecond, l.Ended)
		lab.Exec(p, p.url, "ALTER TABLE "+moved+" RENAME TO "+back)
		return lab.Within(400*time.Millisecond, l.Ended)
	})
}
