package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

func TestMain(m *testing.M) { Main(m) }

// A run without any fault, and its audit: if that fails, the audit of a run with faults says
// nothing.
func TestUndisturbedRunHasNothingToExplain(t *testing.T) {
	OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		rec := StartRecorder(t)
		fleet := StartFleet(t, FleetConfig{
			Database: url, Recorder: rec, Processes: 2,
			Handler: Handler{Seed: Seed(t), Duration: 5 * time.Millisecond, Tx: 0.5, Fail: 0.1, Snooze: 0.1, Panic: 0.02, Ensure: true},
		})
		const jobs = 200
		Enqueue(t, fleet.Store(), jobs)
		fleet.Finish(30 * time.Second)
		fleet.Shutdown()
		a := Audit(t, url, rec, AuditOptions{Jobs: jobs, Fleets: []*Fleet{fleet}})
		Report(t, "undisturbed", a.Facts()...)
		if len(a.Cut) != 0 || a.Refused != 0 || a.Ledger[pacht.OutcomeExpired] != 0 {
			t.Errorf("something had to be explained: %+v", a)
		}
		if a.Ledger[pacht.OutcomeFailed] == 0 || a.Ledger[pacht.OutcomeSnoozed] == 0 || a.Booked == 0 || a.Booked == jobs || a.GivenBack == 0 {
			t.Errorf("the profile was not heeded: %+v", a)
		}
	})
}

// The recorder refuses an effect under a token than which it has seen a higher, whoever asks; one
// without its fence takes it, and then the audit tells.
func TestEffectUnderAStaleTokenIsRefusedOrFoundOut(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		rec := startRecorder(t, !fenced)
		old, young := pacht.Ref{Job: 1, Token: 1}, pacht.Ref{Job: 1, Token: 2}
		pen := NewPen(rec.Addr())
		defer pen.Close()
		for _, err := range []error{pen.Begin(old, "a"), pen.Effect(old, "a"), pen.Begin(young, "b"), pen.Effect(young, "b"), pen.End(young, "b", "done")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := pen.Effect(old, "a"); (err != nil) != fenced {
			t.Errorf("fenced %t: %v", fenced, err)
		}
		a := judge(ran(), rec.Events(), AuditOptions{})
		if found := strings.Join(a.Faults, "\n"); strings.Contains(found, "had an effect after token 2") == fenced {
			t.Errorf("fenced %t, found: %s", fenced, found)
		}
		if a.Effects != 2 {
			t.Errorf("fenced %t: %d effects were rightly accepted", fenced, a.Effects)
		}
	}
}
