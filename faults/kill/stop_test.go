package kill

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/faults/lab"
)

// S032, S033, S034, S035, S036, S037: processes are asked to stop, and are killed at some moment of
// the stop, or are through with it by then. Some handlers heed it and some do not. What was not begun
// is released, what was stopped gives its attempt back, what was cut off comes back by its lease: all
// of it once.
func TestStopsThatAreCutShortLoseNothing(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		seed := lab.Seed(t)
		rec := lab.StartRecorder(t)
		jobs := lab.Scale(70, 700)
		fleet := lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: rec, Processes: 3, Slots: 8, Grace: 150 * time.Millisecond, Unwind: 250 * time.Millisecond,
			Handler: lab.Handler{Seed: seed, Duration: 250 * time.Millisecond, Long: 0.05, LongFor: 800 * time.Millisecond, Tx: 0.3, RepeatTx: true},
		})
		fed := feed(t, fleet.Store(), lab.Scale(70, 200))
		c := newChaos(t, fleet, rec, seed, 400*time.Millisecond, 15)
		c.torment(func(i int, chance *rand.Rand) {
			fleet.Terminate(i)
			c.count("stops")
			within := []time.Duration{100 * time.Millisecond, 600 * time.Millisecond}[chance.IntN(2)] // too early, or any time
			if c.rest(time.Duration(chance.Int64N(int64(within)))); !fleet.Life(i).Ended() {
				fleet.Kill(i)
				c.count("cut_short")
			}
			fleet.Restart(i)
		})
		least := []lab.Fact{lab.F("stops", lab.Scale(3, 20)), lab.F("cut_short", lab.Scale(1, 10))}
		c.await(patience, fed, jobs, least...)
		c.stop()
		jobs = fed.stop()
		fleet.Finish(60 * time.Second)
		fleet.Shutdown()
		a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{fleet}})
		facts := append(c.facts(), a.Facts()...)
		lab.Report(t, "stops cut short", facts...)
		lab.Least(t, facts, lab.F("given_back", lab.Scale(0, 5)))
	})
}
