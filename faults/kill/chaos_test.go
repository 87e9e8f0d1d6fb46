package kill

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/pgserver"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// chaos does something to each process of a fleet, and to its server, again and again, in an
// order that the seed decides.
type chaos struct {
	*testing.T
	fleet *lab.Fleet
	rec   *lab.Recorder
	seed  uint64
	calm  time.Duration // between two faults of one process, at most
	every int           // how many handlers must have come to their end between two faults of one process

	over    chan struct{}
	all     sync.WaitGroup
	mu      sync.Mutex
	done    map[string]int
	outages []lab.Outage
}

func newChaos(t *testing.T, fleet *lab.Fleet, rec *lab.Recorder, seed uint64, calm time.Duration, every int) *chaos {
	c := &chaos{T: t, fleet: fleet, rec: rec, seed: seed, calm: calm, every: every, over: make(chan struct{}), done: map[string]int{}}
	t.Cleanup(c.stop) // before the fleet, which started first, ends
	return c
}

// stop ends the chaos; no process is left frozen by it. It may be repeated.
func (c *chaos) stop() {
	select {
	case <-c.over:
	default:
		close(c.over)
	}
	c.all.Wait()
}

// await waits until so many jobs were fed and so many handlers have come to their end, and until each
// of these faults was done so often: a test must not depend on how fast a machine gets its work done.
func (c *chaos) await(patience time.Duration, fed *feeder, jobs int, least ...lab.Fact) {
	c.Helper()
	lab.Await(c.T, patience, "the work is done, and the faults with it", func() bool {
		return c.Failed() || fed.jobs.Load() >= int64(jobs) && c.rec.Count(lab.End) >= jobs && len(lab.Missing(c.facts(), least...)) == 0
	})
	if c.Failed() {
		c.FailNow()
	}
}

// rest waits, and says whether the chaos is to go on.
func (c *chaos) rest(d time.Duration) bool {
	select {
	case <-c.over:
		return false
	case <-time.After(d):
		return true
	}
}

func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[what]++
}

// outage does something that the server's clients notice, and notes from when to when.
func (c *chaos) outage(what string, act func()) {
	from := time.Now()
	act()
	c.count(what)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outages = append(c.outages, lab.Outage{From: from, Until: time.Now()})
}

func (c *chaos) facts() (facts []lab.Fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(c.done)) {
		facts = append(facts, lab.F(what, c.done[what]))
	}
	return facts
}

// torment does one of these things to each process after the other, with another first to each. In between the fleet has to get
// on: on a slow machine processes would be killed as fast as they start.
func (c *chaos) torment(acts ...func(i int, chance *rand.Rand)) {
	for i := range c.fleet.Size() {
		chance := clock.Seeded(c.seed, "process", fmt.Sprint(i))
		c.all.Go(func() {
			for n := i; c.rest(time.Duration(chance.Int64N(int64(c.calm)))); n++ {
				acts[n%len(acts)](i, chance)
				for since := c.rec.Count(lab.End); c.rec.Count(lab.End) < since+c.every && c.rest(20*time.Millisecond); {
				}
			}
		})
	}
}

// kill ends a process with SIGKILL, and starts it anew.
func (c *chaos) kill(i int, _ *rand.Rand) {
	c.fleet.Kill(i)
	c.count("kills")
	c.fleet.Restart(i)
}

// freeze stops a process until some time after its leases are over (S011, S013).
func (c *chaos) freeze(i int, chance *rand.Rand) {
	c.fleet.Freeze(i)
	c.count("freezes")
	c.rest(ttl + time.Duration(chance.Int64N(int64(2*ttl)))) // others take its jobs, and may be through with them
	c.fleet.Thaw(i)
}

// terminate asks a process to stop, and kills it if it takes longer than chance will have it
// (S036).
func (c *chaos) terminate(i int, chance *rand.Rand) {
	c.fleet.Terminate(i)
	c.count("stops")
	c.rest(time.Duration(chance.Int64N(int64(ttl))))
	c.fleet.Restart(i) // kills it if it still runs
}

// server does something to the server again and again.
func (c *chaos) server(every time.Duration, act func()) {
	chance := clock.Seeded(c.seed, "server")
	c.all.Go(func() {
		for c.rest(every/2 + time.Duration(chance.Int64N(int64(every)))) {
			act()
		}
	})
}

// cut ends all sessions of the database (S038, S039). For a moment after its start the server may
// refuse to.
func (c *chaos) cut(url string) func() {
	const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	return func() {
		c.outage("cuts", func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			var err error
			if !lab.Within(10*time.Second, func() bool { err = pgserver.Execute(ctx, url, terminate); return err == nil }) {
				c.Errorf("pg_terminate_backend: %v", err)
			}
		})
	}
}

// crash kills the postmaster as the kernel would for want of memory, and starts the server again
// (S022, S038).
func (c *chaos) crash(s *pgtest.Server) {
	c.outage("crashes", func() { killPostmaster(c.T, s) })
}

// killPostmaster sends SIGKILL. Its children notice and end by themselves; until the last has,
// another server refuses to use their memory.
func killPostmaster(t *testing.T, s *pgtest.Server) {
	t.Helper()
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Errorf("kill -9 of the postmaster: %v", err)
	}
	if err := s.Server.Kill(); err != nil { // waits for its end
		t.Errorf("end of the postmaster: %v", err)
	}
	var err error
	if !lab.Within(30*time.Second, func() bool { err = s.Server.Start(context.Background()); return err == nil }) {
		t.Errorf("the server did not come back: %v", err)
	}
}
