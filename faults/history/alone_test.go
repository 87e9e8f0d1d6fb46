package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
)

const (
	jobsAlone  = 6
	stepsAlone = 80 // of a wave, of all clients together
)

var (
	longTTLs   = []time.Duration{400 * time.Second, 10 * time.Minute}
	longDelays = []time.Duration{0, 0, 5 * time.Minute, 20 * time.Minute}
	// No sum of these is near a TTL, a crash delay or a delay: how long the steps take by the
	// clock decides nothing.
	ages = []time.Duration{110 * time.Second, 470 * time.Second, 1030 * time.Second}
)

// alone runs waves whose clients call one after the other, in an order that the seed fixes as
// well, and lets time pass by aging what is stored: the same seed gives the same history, call
// by call. That is what the figures of broken rules are measured with.
type alone struct {
	handle
	seed   uint64
	broken *broken // between the recorder and the store; nil = nothing is broken

	events int
	found  []Finding
}

// run ends at the first finding.
func (a *alone) run(t *testing.T, waves int) {
	t.Helper()
	for n := 0; n < waves && len(a.found) == 0; n++ {
		a.wave(t, n)
	}
}

func (a *alone) wave(t *testing.T, n int) {
	t.Helper()
	ctx, queue := t.Context(), fmt.Sprint("w", n)
	var store pacht.Store = a.store
	begin := a.begin
	if a.broken != nil {
		store, begin = a.broken, a.broken.beginTx
	}
	h := NewAlone()
	reader := h.Recorder(store, 3, nil)
	board := newBoard(queue, enqueueWave(t, h.Recorder(a.store, 4, nil), clock.Seeded(a.seed, "alone", queue, "jobs"), queue, jobsAlone, longTTLs, longDelays))
	actors := make([]*client, 3)
	for i := range actors {
		c := &client{name: fmt.Sprint("alone-", queue, "-c", i)}
		if i == 2 {
			c.memory = &forgetful{Store: store}
			c.rec = h.Recorder(c.memory, i, begin).Lossy()
		} else {
			c.rec = h.Recorder(store, i, begin)
		}
		c.draw = newDrawer(clock.Seeded(a.seed, c.name), len(board.ids), i == 2, longDelays...)
		actors[i] = c
	}
	order := clock.Seeded(a.seed, "alone", queue, "order")
	for range stepsAlone {
		if order.IntN(12) == 0 {
			a.age(t, h, ages[order.IntN(len(ages))])
			continue
		}
		c := actors[order.IntN(len(actors))]
		p := c.draw.next()
		p.pause = 0
		c.step(ctx, board, p)
	}
	readAll(ctx, reader, board)
	a.found = append(a.found, h.Check(a.events)...)
	a.events += h.Events()
	if err := h.Trouble(); err != nil && a.broken == nil {
		t.Errorf("wave %d: %v", n, err)
	}
	a.clear(t)
}

func (a *alone) age(t *testing.T, h *History, d time.Duration) {
	t.Helper()
	if err := a.store.Age(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	h.Aged(d)
}

// clear empties the tables, so that aging stays cheap and no wave meets the jobs of another.
func (a *alone) clear(t *testing.T) {
	t.Helper()
	for _, name := range []string{"leases", "attempts", "reports", "jobs", "audit"} {
		if _, err := a.exec(t.Context(), "DELETE FROM "+a.table(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Without anything broken, histories whose order the seed fixes are found right: a finding of
// TestEachBrokenRuleIsFound is the break's.
func TestHistoriesInAFixedOrderAreExplained(t *testing.T) { // R1 to R7, R9, R10
	seed := lab.Seed(t)
	for _, name := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &alone{handle: freshPlace(t, name).open(t), seed: seed}
			a.run(t, lab.Scale(8, 100))
			report(t, a.found)
			lab.Report(t, "fixed order", lab.F("database", name), lab.F("seed", seed), lab.F("events", a.events))
		})
	}
}

// The same seed draws the same plans: PACHT_SEED replays what the clients try.
func TestTheSameSeedDrawsTheSamePlans(t *testing.T) {
	draw := func(seed uint64) (said string) {
		d := newDrawer(clock.Seeded(seed, "c"), jobsOfWave, true, longDelays...)
		for range 200 {
			said += fmt.Sprintf("%+v\n", d.next())
		}
		return said
	}
	seed := rand.Uint64()
	once, again := draw(seed), draw(seed)
	if once != again {
		t.Errorf("seed %d drew two different rows of plans", seed)
	}
	if once == draw(seed+1) {
		t.Errorf("seeds %d and %d drew the same plans", seed, seed+1)
	}
}
