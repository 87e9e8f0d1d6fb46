package kill

import (
	"fmt"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/database"
)

// S026, R9: the only process that runs a watcher is killed again and again: before its pass, in the
// middle of the pass's transaction, and when the answer is there. The others are killed with their
// jobs, so that there is always something to expire. No pass that died keeps another from being made.
func TestWatcherThatDiesInItsPassIsReplaced(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		for _, processes := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d processes", processes), func(t *testing.T) {
				t.Parallel()
				url := anew(t, url)
				rec := lab.StartRecorder(t)
				const jobs = 40
				fleet := lab.StartFleet(t, lab.FleetConfig{
					Database: url, Recorder: rec, Processes: processes, Slots: 4, Watchers: 1,
					Handler: lab.Handler{Duration: 200 * time.Millisecond},
				})
				lab.Enqueue(t, fleet.Store(), jobs, pacht.TTL(300*time.Millisecond))
				middle := "postgres.sent=kill@12"
				if database.IsSQLite(url) {
					middle = "sqlite.written=kill@12"
				}
				for _, point := range []string{"watch.pass.answered=kill@1", middle, "watch.pass.before=kill@3", "watch.pass.answered=kill@2"}[:lab.Scale(2, 4)] {
					for i := 1; i < processes; i++ {
						fleet.Restart(i) // kills it
					}
					fleet.Restart(0, "PACHT_FAILPOINT="+point)
					lab.Await(t, 20*time.Second, "the watcher dies at "+point, fleet.Life(0).Ended)
				}
				fleet.Restart(0)
				fleet.Finish(30 * time.Second)
				fleet.Shutdown()
				a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{fleet}})
				lab.Report(t, "watcher killed in its pass", append([]lab.Fact{lab.F("processes", processes)}, a.Facts()...)...)
				if a.Ledger[pacht.OutcomeExpired] == 0 {
					t.Errorf("nothing expired: %+v", a)
				}
			})
		}
	})
}

// anew makes another fresh database of the same kind.
func anew(t *testing.T, url string) string {
	t.Helper()
	if database.IsSQLite(url) {
		return lab.Fresh(t, lab.FreshFile(t))
	}
	return lab.FreshServer(t)
}
