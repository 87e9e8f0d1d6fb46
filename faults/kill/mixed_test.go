package kill

import (
	"testing"
	"time"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// patience is shorter than that of "go test" for the package.
var patience = time.Duration(lab.Scale(2, 20)) * time.Minute

// profile is that of handlers which do a little of everything.
func profile(seed uint64) lab.Handler {
	return lab.Handler{
		Seed: seed, Duration: 50 * time.Millisecond, Long: 0.02, LongFor: 1500 * time.Millisecond,
		Tx: 0.3, Fail: 0.03, Snooze: 0.02, Panic: 0.005, Deaf: true, RepeatTx: true,
	}
}

// S011, S013, S014, S015, S022, S026, S036, S038, S039: all faults at once, on PostgreSQL. Workers,
// and with them the watchers, are killed, frozen past their leases and stopped, sessions are cut, the
// postmaster is killed; handlers go on although they were told to stop. Everything is completed once,
// and the books of database and recorder agree.
func TestAllFaultsAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	seed := lab.Seed(t)
	server := pgtest.NewServer(t)
	url := lab.Fresh(t, server.Database(t))
	rec := lab.StartRecorder(t)
	jobs := lab.Jobs(t, 800, 25_000)
	fleet := lab.StartFleet(t, lab.FleetConfig{Database: url, Recorder: rec, Processes: 4, Slots: lab.Scale(24, 64), Handler: profile(seed), Grace: 300 * time.Millisecond, Unwind: 200 * time.Millisecond})
	fed := feed(t, fleet.Store(), lab.Scale(100, 500))
	c := newChaos(t, fleet, rec, seed, 1200*time.Millisecond, lab.Scale(600, 1000))
	c.torment(c.kill, c.freeze, c.terminate)
	cut, every := c.cut(url), time.Duration(lab.Scale(3, 15))*time.Second
	least := []lab.Fact{lab.F("kills", lab.Scale(1, 10)), lab.F("freezes", lab.Scale(1, 10)), lab.F("stops", lab.Scale(1, 10)), lab.F("cuts", lab.Scale(0, 2)), lab.F("crashes", lab.Scale(1, 2))}
	n := 0
	c.server(every, func() {
		switch n++; {
		case n > 3 && !lab.Long(): // enough
		case n%2 == 1:
			c.crash(server)
		default:
			cut()
		}
	})
	c.await(patience, fed, jobs, least...)
	c.stop()
	fleet.Revive()
	jobs = fed.stop()
	fleet.Finish(2 * time.Minute)
	fleet.Shutdown()
	a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{fleet}, Outages: c.outages})
	facts := append(c.facts(), a.Facts()...)
	lab.Report(t, "all faults at once, postgres", facts...)
	lab.Least(t, facts, lab.F("expired", 1), lab.F("reports", lab.Scale(0, 1)), lab.F("effects_refused", lab.Scale(0, 1)))
}

// S011, S013, S014, S015, S026, S036, S056: the same on SQLite, where four processes share the file.
func TestAllFaultsAtOnceLoseNothingOnAFile(t *testing.T) {
	t.Parallel()
	seed := lab.Seed(t)
	url := lab.Fresh(t, lab.FreshFile(t))
	rec := lab.StartRecorder(t)
	jobs := lab.Scale(300, 3000)
	fleet := lab.StartFleet(t, lab.FleetConfig{Database: url, Recorder: rec, Processes: 4, Slots: 8, Handler: profile(seed), Grace: 300 * time.Millisecond, Unwind: 200 * time.Millisecond})
	fed := feed(t, fleet.Store(), 50)
	c := newChaos(t, fleet, rec, seed, 1200*time.Millisecond, 60)
	c.torment(c.kill, c.freeze, c.terminate)
	least := []lab.Fact{lab.F("kills", lab.Scale(1, 10)), lab.F("freezes", lab.Scale(1, 10)), lab.F("stops", lab.Scale(1, 10))}
	c.await(patience, fed, jobs, least...)
	c.stop()
	fleet.Revive()
	jobs = fed.stop()
	fleet.Finish(2 * time.Minute)
	fleet.Shutdown()
	a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{fleet}})
	facts := append(c.facts(), a.Facts()...)
	lab.Report(t, "all faults at once, sqlite", facts...)
	lab.Least(t, facts, lab.F("expired", 1), lab.F("reports", lab.Scale(0, 1)))
}
