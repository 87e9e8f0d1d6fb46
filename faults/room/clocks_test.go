//go:build faultlab

package room_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// works enqueues n jobs of the fleet's kind.
func works(t *testing.T, f *lab.Fleet, n int, work lab.Work, opts ...pacht.Option) []pacht.ID {
	t.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		work.N = i
		jobs[i] = pacht.New(work, opts...)
	}
	answers, err := f.Store().Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]pacht.ID, n)
	for i, a := range answers {
		ids[i] = a.ID
	}
	return ids
}

// held waits until so many leases are held.
func held(t *testing.T, f *lab.Fleet, n int64) {
	t.Helper()
	lab.Await(t, 20*time.Second, "leases are held", func() bool {
		counts, err := f.Store().Counts(t.Context())
		for _, c := range counts {
			if err == nil && c.Status == pacht.Processing && c.Jobs == n {
				return true
			}
		}
		return false
	})
}

// S013, R6: one process's clock is an hour ahead, one's an hour behind, one's is right. Leases
// are the database's business: none runs out, though a good part of the jobs takes longer than
// its TTL and so needs renewals.
func TestClocksOfWorkersThatAreAheadOrBehindDecideNothing(t *testing.T) {
	t.Parallel()
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		rec := lab.StartRecorder(t)
		f := lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: rec, Slots: 8, Poll: 200 * time.Millisecond, Watch: 400 * time.Millisecond,
			Handler: lab.Handler{Seed: lab.Seed(t), Duration: 20 * time.Millisecond, Long: 0.05, LongFor: 5 * time.Second, Tx: 0.1},
		})
		f.Restart(1, "PACHT_CLOCK=wall=+1h")
		f.Restart(2, "PACHT_CLOCK=wall=-1h")
		jobs := lab.Scale(200, 3000)
		works(t, f, jobs, lab.Work{}, pacht.TTL(4*time.Second))
		f.Finish(60 * time.Second)
		for i, want := range []time.Duration{0, time.Hour, -time.Hour} {
			if off := rec.ClockOff(f.Life(i).Owner); off != want {
				t.Errorf("the clock of process %d is %s off, want %s: nothing was proved", i, off, want)
			}
		}
		f.Shutdown()
		a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{f}})
		if a.Ledger[pacht.OutcomeExpired]+a.Ledger[pacht.OutcomeFailed] > 0 {
			t.Errorf("leases ended as %v", a.Ledger)
		}
		lab.Report(t, "room/clocks", a.Facts()...)
	})
}

// S013, R8: the holder's wall clock jumps ahead; or its boot time does and no other clock, as
// after a suspension. It believes the most pessimistic one and stops its handlers at once,
// though the database would hold their leases for long, with their attempts given back; and goes
// on working.
func TestTheMostPessimisticClockDeposesTheHolder(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"wall", "boot"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			url := lab.Fresh(t, lab.FreshFile(t))
			jump := filepath.Join(t.TempDir(), "jump")
			rec := lab.StartRecorder(t)
			f := lab.StartFleet(t, lab.FleetConfig{Database: url, Recorder: rec, Processes: 1, Clock: of + "=+10m@" + jump})
			const jobs = 4
			ids := works(t, f, jobs, lab.Work{Do: "wait"}, pacht.TTL(9*time.Second))
			lab.Await(t, 20*time.Second, "all handlers run", func() bool { return rec.Count(lab.Begin) == jobs })
			if err := os.WriteFile(jump, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			for _, id := range ids {
				var first []pacht.Attempt
				lab.Await(t, 10*time.Second, "the holder has stopped", func() bool {
					var err error
					first, err = f.Store().Attempts(t.Context(), id)
					return err == nil && len(first) > 0
				})
				a := first[0]
				if a.Outcome != pacht.OutcomeFailed || !strings.Contains(a.Error, "could not be renewed in time") {
					t.Errorf("job %d: %+v", id, a)
				}
				if took := a.EndedAt.Sub(at); took > 5*time.Second {
					t.Errorf("job %d: stopped %s after the jump", id, took)
				}
			}
			held(t, f, jobs) // again, by the same process
			for _, id := range ids {
				if job, err := f.Store().Job(t.Context(), id); err != nil || job.Attempt != 1 || job.Token != 2 || job.Crashes != 0 {
					t.Errorf("job %d: attempt %d, token %d, crashes %d, %v", id, job.Attempt, job.Token, job.Crashes, err)
				}
				if _, err := f.Store().Cancel(t.Context(), id, pacht.Act{By: "test", Reason: "it waits for ever"}); err != nil {
					t.Error(err)
				}
			}
			f.Finish(40 * time.Second)
			f.Shutdown()
			lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{f}, End: func(pacht.ID) pacht.Status { return pacht.Cancelled }})
		})
	}
}

// S013, R8: a wall clock that jumps back makes no lease longer, and none shorter.
func TestAClockThatJumpsBackChangesNothing(t *testing.T) {
	t.Parallel()
	url := lab.Fresh(t, lab.FreshFile(t))
	jump := filepath.Join(t.TempDir(), "jump")
	rec := lab.StartRecorder(t)
	f := lab.StartFleet(t, lab.FleetConfig{
		Database: url, Recorder: rec, Processes: 2, Clock: "wall=-10m@" + jump,
		Handler: lab.Handler{Long: 1, LongFor: 5 * time.Second},
	})
	const jobs, more = 8, 8
	works(t, f, jobs, lab.Work{}, pacht.TTL(3*time.Second))
	lab.Await(t, 20*time.Second, "all handlers run", func() bool { return rec.Count(lab.Begin) == jobs })
	if err := os.WriteFile(jump, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	works(t, f, more, lab.Work{}, pacht.TTL(3*time.Second)) // their handlers tell what the clock shows by then
	f.Finish(30 * time.Second)
	if off := min(rec.ClockOff(f.Life(0).Owner), rec.ClockOff(f.Life(1).Owner)); off != -10*time.Minute {
		t.Errorf("no clock jumped back, they are %s off: nothing was proved", off)
	}
	f.Shutdown()
	a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs + more, Fleets: []*lab.Fleet{f}})
	if a.Ledger[pacht.OutcomeCompleted] != jobs+more || len(a.Ledger) > 1 {
		t.Errorf("leases ended as %v", a.Ledger)
	}
}
