package kill

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/netfault"
)

// R4, R7: a client stops inside its transaction, after CompleteTx and before COMMIT, or inside
// CompleteTx itself, as soon as the row is locked. It keeps the row no longer than its lease lasts:
// then another does the job. When it goes on, its COMMIT fails, and the job is booked once.
func TestClientStoppedBeforeItsCommitKeepsTheRowNoLongerThanTheLease(t *testing.T) {
	for _, point := range []string{"worker.tx.completed", "postgres.tx.closed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			url := lab.FreshServer(t)
			rec := lab.StartRecorder(t)
			stopped := lab.StartFleet(t, lab.FleetConfig{
				Database: url, Recorder: rec, Processes: 1, Watchers: -1, Failpoints: point + "=stop",
			})
			id := enqueueTx(t, stopped.Store())
			lab.Await(t, 20*time.Second, "it stands still in its transaction", stopped.Life(0).Frozen)
			others := lab.StartFleet(t, lab.FleetConfig{Database: url, Recorder: rec, Processes: 1})
			others.Finish(15 * time.Second)
			stopped.Thaw(0)
			lab.Await(t, 20*time.Second, "its COMMIT has failed, and its handler has ended", func() bool { return rec.Count(lab.End) == 2 })
			stopped.Shutdown()
			others.Shutdown()
			a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: 1, Fleets: []*lab.Fleet{stopped, others}})
			if a.Ledger[pacht.OutcomeExpired] != 1 || a.Booked != 1 {
				t.Errorf("%+v", a)
			}
			ledger, err := others.Store().Attempts(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			// A row that is free later than its lease ends, and a second as the server's least bound.
			free := ledger[0].EndedAt.Sub(ledger[0].ClaimedAt)
			lab.Report(t, "stopped before COMMIT", lab.F("point", point), lab.F("ttl_ms", ttl.Milliseconds()), lab.F("free_after_ms", free.Milliseconds()))
			if free > 10*time.Second {
				t.Errorf("the row was free after %s, with a lease of %s", free, ttl)
			}
		})
	}
}

// R4, S056: on SQLite the same client pauses the whole file, as docs/databases.md says, and nobody
// can take its job meanwhile. If it goes on, its COMMIT counts; if it is killed, the file is free at
// once and another does the job. Either way the job is booked once.
func TestClientStoppedBeforeItsCommitPausesTheFile(t *testing.T) {
	for _, point := range []string{"worker.tx.completed", "sqlite.tx.closed"} {
		for _, goesOn := range []bool{true, false} {
			t.Run(point+map[bool]string{true: ", goes on", false: ", is killed"}[goesOn], func(t *testing.T) {
				t.Parallel()
				url := lab.Fresh(t, lab.FreshFile(t))
				rec := lab.StartRecorder(t)
				stopped := lab.StartFleet(t, lab.FleetConfig{
					Database: url, Recorder: rec, Processes: 1, Watchers: -1, Failpoints: point + "=stop",
				})
				enqueueTx(t, stopped.Store())
				lab.Await(t, 20*time.Second, "it stands still in its transaction", stopped.Life(0).Frozen)
				others := lab.StartFleet(t, lab.FleetConfig{Database: url, Recorder: rec, Processes: 1})
				paused := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), ttl+200*time.Millisecond)
					defer cancel()
					return others.Store().Leave(ctx, "nobody") // a write that changes nothing
				}
				if paused() == nil {
					t.Error("somebody could write to the file")
				}
				want := 1
				if goesOn {
					stopped.Thaw(0)
				} else {
					stopped.Kill(0)
					want = 2
				}
				others.Finish(15 * time.Second)
				stopped.Shutdown()
				others.Shutdown()
				a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: 1, Fleets: []*lab.Fleet{stopped, others}})
				if a.Attempts != want || a.Booked != 1 {
					t.Errorf("%+v", a)
				}
			})
		}
	}
}

func enqueueTx(t *testing.T, s pacht.Enqueuer) pacht.ID {
	t.Helper()
	answers, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(lab.Work{Do: "tx"}, pacht.TTL(ttl))})
	if err != nil {
		t.Fatal(err)
	}
	return answers[0].ID
}

// R4: the answer to a business COMMIT is lost on its way. The handler repeats the whole transaction,
// CompleteTx tells it that the first one stands, and the job is booked once.
func TestRepeatedTransactionAfterAnUnansweredCommitBooksOnce(t *testing.T) {
	t.Parallel()
	direct := lab.FreshServer(t)
	at, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	proxy := netfault.New(t, at.Host)
	through := *at
	through.Host = proxy.Addr()
	rec := lab.StartRecorder(t)
	fleet := lab.StartFleet(t, lab.FleetConfig{
		Database: direct, Business: through.String(), Recorder: rec, Processes: 2, Slots: 4, Handler: lab.Handler{RepeatTx: true, Tx: 1},
	})
	cut := lab.Scale(10, 150)
	jobs := 0
	for range cut {
		trap := proxy.CutAnswer([]byte("commit\x00"), netfault.Committed)
		lab.Enqueue(t, fleet.Store(), 3, pacht.TTL(20*time.Second))
		jobs += 3
		trap.Wait(t)
	}
	fleet.Finish(30 * time.Second)
	fleet.Shutdown()
	a := lab.Audit(t, direct, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{fleet}})
	lab.Report(t, "COMMIT unanswered and repeated", append([]lab.Fact{lab.F("unanswered", cut)}, a.Facts()...)...)
	if a.Booked != jobs || a.Attempts != jobs {
		t.Errorf("%d jobs, %d attempts, booked %d times", jobs, a.Attempts, a.Booked)
	}
}
