package kill

import (
	"fmt"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
)

// S056, S057: three processes on one SQLite file; one after the other is killed in the middle of a
// write transaction: begun, written and not committed, committed and not told, and inside the
// handler's own. What was not committed is gone, what was stands, and the others go on.
func TestProcessKilledInsideAWriteTransactionLeavesTheFileWhole(t *testing.T) {
	t.Parallel()
	seed := lab.Seed(t)
	url := lab.Fresh(t, lab.FreshFile(t))
	rec := lab.StartRecorder(t)
	fleet := lab.StartFleet(t, lab.FleetConfig{
		Database: url, Recorder: rec, Processes: 3, Slots: 8,
		Handler: lab.Handler{Seed: seed, Duration: 60 * time.Millisecond, Tx: 0.4, Fail: 0.05, RepeatTx: true},
	})
	fed := feed(t, fleet.Store(), 60)
	points := []string{"sqlite.begun", "sqlite.written", "sqlite.committed", "sqlite.tx.closed"}
	chance := clock.Seeded(seed, "points")
	kills := len(points) * lab.Scale(1, 5)
	for n := range kills {
		i, point := chance.IntN(fleet.Size()), points[n%len(points)]
		fleet.Restart(i, fmt.Sprintf("PACHT_FAILPOINT=%s=kill@%d", point, 2+chance.IntN(10)))
		lab.Await(t, 30*time.Second, "a process dies at "+point, fleet.Life(i).Ended)
		fleet.Restart(i)
	}
	jobs := fed.stop()
	fleet.Finish(60 * time.Second)
	fleet.Shutdown()
	if whole := lab.Value(t, url, "PRAGMA integrity_check"); whole != "ok" {
		t.Errorf("the file is not whole: %s", whole)
	}
	a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{fleet}})
	lab.Report(t, "killed inside write transactions", append([]lab.Fact{lab.F("kills", kills)}, a.Facts()...)...)
}
