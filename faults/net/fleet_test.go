package net_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// R1 to R9, S022, S039 to S042: worker processes behind a proxy that cuts, delays, silences and
// tears their connections, and processes killed and started again meanwhile. The audit goes
// through every lease that there was: each job completed once, no two owners at a time, each
// attempt begun or explained, each effect under a stale token refused.
func TestAFleetBehindABrokenNetworkCompletesEachJobOnce(t *testing.T) {
	direct := lab.Fresh(t, pgtest.Database(t))
	p := newProxy(t, direct)
	seed := lab.Seed(t)
	rec := lab.StartRecorder(t)
	jobs := lab.Scale(500, 100_000)
	store := lab.Open(t, direct)
	for work := range slices.Chunk(make([]lab.Work, jobs), 5000) {
		batch := make([]pacht.NewJob, len(work))
		for i := range batch {
			batch[i] = pacht.New(work[i], pacht.TTL(2*time.Second), pacht.MaxCrashes(50))
		}
		if _, err := store.Enqueue(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	f := lab.StartFleet(t, lab.FleetConfig{
		Database: p.url, Recorder: rec, Processes: 3, Slots: 40,
		Handler: lab.Handler{Seed: seed, Duration: 4 * time.Millisecond, Long: 0.002, LongFor: 2500 * time.Millisecond, Tx: 0.1, RepeatTx: true, Fail: 0.01},
	})
	chance := clock.Seeded(seed, "fleet")
	names := []string{"cut", "silent", "halved", "torn", "delayed", "crumbs"}
	faults, kills := 0, 0
	end := time.Now().Add(time.Duration(lab.Scale(2, 60)) * time.Second)
	for time.Now().Before(end) && rec.Count(lab.Effect) < jobs*9/10 {
		plagues[names[chance.IntN(len(names))]](p)
		faults++
		time.Sleep(time.Duration(50+chance.IntN(350)) * time.Millisecond) // the outage itself
		p.heal()
		if faults%3 == 0 {
			f.Restart(chance.IntN(f.Size())) // kills the one that runs
			kills++
		}
		time.Sleep(time.Duration(chance.IntN(300)) * time.Millisecond) // work
	}
	f.Finish(120 * time.Second)
	f.Shutdown()
	a := lab.Audit(t, direct, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{f}, Unanswered: true})
	lab.Report(t, "net/fleet", append(a.Facts(), lab.F("network faults", faults), lab.F("kills", kills))...)
}
