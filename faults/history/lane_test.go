package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
)

const (
	jobsOfWave  = 20
	stepsOfWave = 110 // of each client
	clients     = 4
)

var (
	quickTTLs   = []time.Duration{100 * time.Millisecond, 130 * time.Millisecond, 300 * time.Millisecond}
	quickDelays = []time.Duration{0, 0, 20 * time.Millisecond, 60 * time.Millisecond}
)

// lane runs wave after wave on a database of its own. A wave is some jobs and some clients that
// go for them at once, each with its own connections, one of which breaks; then everything is
// read once more, and every job's calls are checked.
type lane struct {
	name   string
	place  *place
	seed   uint64
	opened []handle
	wrap   func(handle) pacht.Store // between the recorder and the store; nil = nothing

	events, jobs, open int
	found              []Finding
}

// run ends at the first finding, when so many events are written down, or, after two waves, when
// the time is over.
func (l *lane) run(t *testing.T, enough int, bound time.Duration) {
	until := time.Now().Add(bound)
	for range clients {
		l.opened = append(l.opened, l.place.open(t))
	}
	proxied, proxy := handle{}, (*client)(nil)
	if l.place.name == "postgres" {
		h, p := l.place.openShaken(t)
		proxied, proxy = h, &client{proxy: p}
	}
	for n := 0; l.events < enough && (n < 2 || time.Now().Before(until)) && len(l.found) == 0 && !t.Failed(); n++ {
		l.wave(t, n, proxied, proxy)
	}
}

func (l *lane) wave(t *testing.T, n int, proxied handle, shaken *client) {
	ctx, queue := t.Context(), fmt.Sprint("w", n)
	h := New()
	store := func(of handle) pacht.Store {
		if l.wrap != nil {
			return l.wrap(of)
		}
		return of.store
	}
	reader := h.Recorder(store(l.opened[0]), clients, nil)
	board := newBoard(queue, enqueueWave(t, reader, clock.Seeded(l.seed, l.name, queue, "jobs"), queue, jobsOfWave, quickTTLs, quickDelays))
	var running sync.WaitGroup
	for i := range clients {
		c := &client{name: fmt.Sprintf("%s-%s-c%d", l.name, queue, i)}
		of, last := l.opened[i], i == clients-1
		switch {
		case last && shaken != nil:
			of, c.proxy = proxied, shaken.proxy
			c.rec = h.Recorder(store(of), i, of.begin).Lossy()
		case last:
			c.memory = &forgetful{Store: store(of)}
			c.rec = h.Recorder(c.memory, i, of.begin).Lossy()
		default:
			c.rec = h.Recorder(store(of), i, of.begin)
		}
		c.draw = newDrawer(clock.Seeded(l.seed, c.name), len(board.ids), last, quickDelays...)
		running.Go(func() {
			for range stepsOfWave {
				c.step(ctx, board, c.draw.next())
			}
		})
	}
	running.Wait()
	readAll(ctx, reader, board)
	l.found = append(l.found, h.Check(l.events)...)
	l.events += h.Events()
	l.jobs += len(board.ids)
	l.open += h.unansweredEvents()
	if err := h.Trouble(); err != nil {
		t.Errorf("%s, wave %d: %v", l.name, n, err)
	}
}

// enqueueWave stores the jobs of a wave.
func enqueueWave(t *testing.T, rec *Recorder, rnd *rand.Rand, queue string, n int, ttls, delays []time.Duration) []pacht.ID {
	t.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = newJob(rnd, queue, ttls, delays)
	}
	got, err := rec.Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]pacht.ID, len(got))
	for i, g := range got {
		if g.Err != nil {
			t.Fatal(g.Err)
		}
		ids[i] = g.ID
	}
	return ids
}

// readAll reads every job and its ledger: calls of a client like others.
func readAll(ctx context.Context, rec *Recorder, b *board) {
	for _, id := range b.ids {
		_, _ = rec.Job(ctx, id)
		_, _ = rec.Attempts(ctx, id)
	}
}

// report tells of findings, with a page for each of the first.
func report(t *testing.T, found []Finding) {
	t.Helper()
	for i, f := range found {
		if i == 3 {
			t.Errorf("and %d more", len(found)-i)
			break
		}
		page, err := f.Draw(t.ArtifactDir())
		if err != nil {
			t.Log(err)
		}
		t.Errorf("%s\npage: %s\n%s", f, page, f.Calls())
	}
}

// Many clients at once, some of whose answers get lost and whose connections are cut: every
// answer that anybody got must be one that a single lease, kept by the rules, could have given.
func TestWhatClientsSeeIsOneLeaseKeptByTheRules(t *testing.T) { // R1 to R7, R9, R10; S014, S015, S016, S017, S018, S019, S046
	seed := lab.Seed(t)
	for _, name := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lanes := make([]*lane, lab.Scale(1, 2))
			enough, bound := 3000, 5*time.Second
			if lab.Long() {
				enough, bound = 10_000, 3*time.Minute
			}
			t.Run("lanes", func(t *testing.T) {
				for i := range lanes {
					lanes[i] = &lane{name: fmt.Sprint(name, i), seed: seed}
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						t.Parallel()
						lanes[i].place = freshPlace(t, name)
						lanes[i].run(t, enough, bound)
						report(t, lanes[i].found)
						if bad, err := lanes[i].opened[0].store.Check(t.Context()); err != nil || len(bad) > 0 {
							t.Errorf("the store's own check: %v, %v", bad, err)
						}
					})
				}
			})
			events, jobs, open := 0, 0, 0
			for _, l := range lanes {
				events, jobs, open = events+l.events, jobs+l.jobs, open+l.open
			}
			if all := enough * len(lanes); lab.Long() && events < all && !t.Failed() {
				t.Errorf("%d events in %s, want %d", events, bound, all)
			}
			lab.Report(t, "histories", lab.F("database", name), lab.F("seed", seed), lab.F("events", events), lab.F("jobs", jobs), lab.F("without_answer", open))
		})
	}
}
