package kill

import (
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// S011, S013, S014, S015, S023, R3, R7: a process frozen past its leases, while another does its jobs,
// wakes up in the middle of its handlers, which fill all its slots and do not heed that they are told to stop. What they then do
// outside is refused by the fence of whoever is asked for it; what they write is refused by the store,
// kept as a report, and changes nothing.
func TestFrozenProcessIsRefusedEverywhereWhenItWakes(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		const jobs = 20
		rec := lab.StartRecorder(t)
		sleeper := lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: rec, Processes: 1, Slots: jobs, Watchers: -1,
			Handler: lab.Handler{Least: 500 * time.Millisecond, Deaf: true, Tx: 0.5},
		})
		lab.Enqueue(t, sleeper.Store(), jobs, pacht.TTL(ttl))
		lab.Await(t, 20*time.Second, "it has begun all", func() bool { return rec.Count(lab.Begin) == jobs })
		sleeper.Freeze(0)
		mine := jobs - rec.Count(lab.Effect) // the others' effect was made in time
		others := lab.StartFleet(t, lab.FleetConfig{Database: url, Recorder: rec, Processes: 1, Slots: jobs})
		others.Finish(30 * time.Second)
		sleeper.Thaw(0)
		lab.Await(t, 20*time.Second, "its handlers come to their end", func() bool { return rec.Count(lab.End) >= rec.Count(lab.Begin) })
		sleeper.Shutdown()
		others.Shutdown()
		a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{sleeper, others}})
		lab.Report(t, "frozen past its leases", append([]lab.Fact{lab.F("frozen_with", mine)}, a.Facts()...)...)
		if mine == 0 || a.Refused == 0 || a.Reports == 0 || a.Ledger[pacht.OutcomeExpired] == 0 {
			t.Errorf("too little happened, frozen with %d: %+v", mine, a)
		}
	})
}
