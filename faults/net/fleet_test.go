package net_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// R1 to R9, S022, S039 to S042: worker processes behind a proxy that cuts, delays, silences and
// tears their connections, and processes killed and started again meanwhile; jobs come in as long as
// it lasts. The audit goes through every lease that there was: each job completed once, no two owners
// at a time, each attempt begun or explained, each effect under a stale token refused.
func TestAFleetBehindABrokenNetworkCompletesEachJobOnce(t *testing.T) {
	direct := lab.Fresh(t, pgtest.Database(t))
	p := newProxy(t, direct)
	seed := lab.Seed(t)
	rec := lab.StartRecorder(t)
	store := lab.Open(t, direct)
	f := lab.StartFleet(t, lab.FleetConfig{
		Database: named(t, p.url, "fleet"), Recorder: rec, Processes: 3, Slots: 40,
		Handler: lab.Handler{Seed: seed, Duration: 4 * time.Millisecond, Long: 0.002, LongFor: 2500 * time.Millisecond, Tx: 0.1, RepeatTx: true, Fail: 0.01},
	})
	chance := clock.Seeded(seed, "fleet")
	names := []string{"cut", "silent", "halved", "torn", "delayed", "crumbs"}
	rounds := lab.Scale(1, 9)
	each := lab.Jobs(t, 480, 25_000) / (rounds * len(names))
	jobs, faults, kills := 0, 0, 0
	feed := func() {
		lab.Enqueue(t, store, each/2, pacht.TTL(2*time.Second))
		jobs += each / 2
	}
	const theirs = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fleet' AND backend_start <= $1"
	began := time.Now()
	sessions, err := count(direct, theirs, began)
	if err != nil {
		t.Fatal(err)
	}
	var outages []lab.Outage
	for range rounds {
		for _, n := range chance.Perm(len(names)) {
			feed()
			from := time.Now()
			plagues[names[n]](p)
			feed()
			time.Sleep(time.Duration(50+chance.IntN(350)) * time.Millisecond) // the outage itself
			p.heal()
			outages = append(outages, lab.Outage{From: from, Until: time.Now()})
			if faults++; faults%3 == 0 {
				f.Restart(kills % f.Size()) // kills the one that runs
				kills++
			}
			time.Sleep(time.Duration(chance.IntN(300)) * time.Millisecond) // work
		}
	}
	f.Finish(120 * time.Second)
	left, err := count(direct, theirs, began)
	if err != nil {
		t.Fatal(err)
	}
	f.Shutdown()
	a := lab.Audit(t, direct, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{f}, Outages: outages})
	facts := append(a.Facts(), lab.F("network_faults", faults), lab.F("kills", kills), lab.F("sessions_broken", sessions-left))
	lab.Report(t, "net/fleet", facts...)
	lab.Least(t, facts, lab.F("network_faults", 6*rounds), lab.F("kills", 2*rounds), lab.F("sessions_broken", max(sessions, 1)))
}

// named has its sessions bear a name at the server.
func named(t *testing.T, database, name string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String()
}
