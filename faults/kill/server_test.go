package kill

import (
	"context"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// S022, S038, S039, S040: nothing happens to the workers, and everything to their server: all
// sessions are cut, again and again, and the postmaster is killed. No worker ends and none has to be
// started anew; what was in hand is completed once, and new jobs are done by the same processes.
// With an outage shorter than the leases nothing runs twice.
func TestWorkersOutliveTheirServer(t *testing.T) {
	t.Parallel()
	seed := lab.Seed(t)
	server := pgtest.NewServer(t)
	url := lab.Fresh(t, server.Database(t))
	rec := lab.StartRecorder(t)
	jobs := lab.Scale(120, 1500)
	fleet := lab.StartFleet(t, lab.FleetConfig{
		Database: url, Recorder: rec, Processes: 3, Slots: 8,
		Handler: lab.Handler{Seed: seed, Duration: 150 * time.Millisecond, Long: 0.05, LongFor: 2 * time.Second, Tx: 0.5, RepeatTx: true},
	})
	const long = 30 * time.Second // longer than any of these outages
	lab.Enqueue(t, fleet.Store(), jobs, pacht.TTL(long))
	c := newChaos(t, fleet, rec, seed, time.Second, 0)
	cut := c.cut(url)
	cuts := lab.Scale(2, 10)
	for range cuts {
		c.rest(200 * time.Millisecond)
		cut()
	}
	c.crash(server)
	var more []pacht.NewJob
	for i := range 50 {
		more = append(more, pacht.New(lab.Work{N: jobs + i}, pacht.TTL(long)))
	}
	lab.Await(t, 20*time.Second, "the test's own store enqueues again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := fleet.Store().Enqueue(ctx, more)
		return err == nil
	})
	fleet.Finish(60 * time.Second)
	if n := len(fleet.Lives()); n != fleet.Size() {
		t.Errorf("%d processes were needed, and %d were started", n, fleet.Size())
	}
	fleet.Shutdown()
	a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs + len(more), Fleets: []*lab.Fleet{fleet}})
	facts := append(c.facts(), a.Facts()...)
	lab.Report(t, "server killed under its workers", facts...)
	lab.Least(t, facts, lab.F("cuts", cuts), lab.F("crashes", 1))
	if n := a.Ledger[pacht.OutcomeExpired]; n != 0 {
		t.Errorf("%d leases ran out, and all were longer than the outages: an unanswered claim was not asked for", n)
	}
}
