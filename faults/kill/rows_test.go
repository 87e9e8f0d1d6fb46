package kill

import (
	"fmt"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// S020, R7, R11: a keyed job falls silent: its process is frozen, the watcher gives it up, and the life
// of its key is over. A producer repeats the enqueue all the time. There is no twin until the job is
// finished, and what its handler answers when it wakes up changes nothing.
func TestKeyOfASilentJobIsNotFreed(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		rec := lab.StartRecorder(t)
		fleet := lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: rec, Processes: 2, Slots: 2, Watchers: 2,
			Handler: lab.Handler{Least: 3 * time.Second, Deaf: true}, // time to freeze it in
		})
		store := fleet.Store()
		asked := 0
		again := func() pacht.Enqueued {
			t.Helper()
			asked++
			job := pacht.New(lab.Work{}, pacht.TTL(ttl), pacht.MaxCrashes(1), pacht.IdempotencyKey("k"), pacht.KeyLife(time.Second))
			answers, err := store.Enqueue(t.Context(), []pacht.NewJob{job})
			if err != nil || answers[0].Err != nil {
				t.Fatalf("enqueue: %v, %+v", err, answers)
			}
			return answers[0]
		}
		first := again()
		lab.Await(t, 20*time.Second, "its handler has begun", func() bool { return rec.Count(lab.Begin) == 1 })
		sleeper := 0
		if fleet.Life(1).Owner == rec.Events()[0].Owner {
			sleeper = 1
		}
		fleet.Freeze(sleeper)
		over := time.Now().Add(3 * time.Second) // its lease, and the key's life
		lab.Await(t, 20*time.Second, "the job is parked, and its key's life over", func() bool {
			if now := again(); !now.Duplicate || now.ID != first.ID {
				t.Fatalf("enqueue %d: %+v, want the job %s", asked, now, first.ID)
			}
			return status(t, store, first.ID) == pacht.Stuck && time.Now().After(over)
		})
		fleet.Thaw(sleeper)
		lab.Await(t, 20*time.Second, "its handler comes to its end, and its answer is kept as a report", func() bool {
			reports, err := store.Reports(t.Context(), first.ID)
			if err != nil {
				t.Fatal(err)
			}
			return rec.Count(lab.End) == 1 && len(reports) == 1
		})
		if now := again(); !now.Duplicate || status(t, store, first.ID) != pacht.Stuck {
			t.Errorf("after its late success: %+v, %s", now, status(t, store, first.ID))
		}
		act := pacht.Act{By: "ann", Reason: "the handler was through"}
		if err := store.Resolve(t.Context(), pacht.Ref{Job: first.ID, Token: 1}, pacht.Resolution{Status: pacht.Completed}, act); err != nil {
			t.Fatal(err)
		}
		if now := again(); now.Duplicate || now.ID == first.ID {
			t.Errorf("when it is finished: %+v", now)
		}
		fleet.Finish(20 * time.Second)
		fleet.Shutdown()
		if begun := rec.Count(lab.Begin); begun != 2 {
			t.Errorf("%d handlers were begun for two jobs", begun)
		}
		lab.Report(t, "the key of a silent job", lab.F("asked", asked))
	})
}

// S021: rows of jobs are deleted by hand while their handlers run. No process dies of it, no slot is
// lost, and all other jobs are done.
func TestJobsDeletedWhileTheyRunLoseNothingElse(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		rec := lab.StartRecorder(t)
		fleet := lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: rec, Processes: 2, Slots: 4,
			Handler: lab.Handler{Least: 100 * time.Millisecond, Duration: 200 * time.Millisecond, Tx: 0.3, Fail: 0.2, Snooze: 0.1},
		})
		jobs := lab.Scale(60, 400)
		lab.Enqueue(t, fleet.Store(), jobs, pacht.TTL(ttl))
		leases, facts, attempts := lab.Table(t, url, "leases"), lab.Table(t, url, "jobs"), lab.Table(t, url, "attempts")
		deleted, want := 0, lab.Scale(6, 60)
		lab.Await(t, 2*time.Minute, "rows are deleted", func() bool {
			id := lab.Value(t, url, fmt.Sprintf("SELECT coalesce(min(job_id), 0) FROM %s WHERE status = 'Processing'", leases))
			if id == "0" {
				return false
			}
			lab.Exec(t, url, fmt.Sprintf("DELETE FROM %s WHERE job_id = %s AND status = 'Processing'", leases, id))
			if lab.Value(t, url, fmt.Sprintf(`SELECT (SELECT count(*) FROM %s WHERE job_id = %s)
				+ (SELECT count(*) FROM %s WHERE job_id = %[2]s AND next_status = 'Completed')`, leases, id, attempts)) != "0" {
				return false // it was just through with this attempt, or with all
			}
			lab.Exec(t, url, fmt.Sprintf("DELETE FROM %s WHERE job_id = %s", facts, id))
			deleted++
			return deleted == want
		})
		fleet.Finish(time.Minute)
		if n := len(fleet.Lives()); n != fleet.Size() {
			t.Errorf("%d processes were needed, and %d were started", n, fleet.Size())
		}
		fleet.Shutdown()
		completed := lab.Value(t, url, fmt.Sprintf("SELECT count(*) FROM %s WHERE next_status = 'Completed' AND job_id IN (SELECT job_id FROM %s)", attempts, facts))
		if left := lab.Value(t, url, "SELECT count(*) FROM "+facts); left != completed {
			t.Errorf("%s of %s jobs that were left were completed", completed, left)
		}
		lab.Report(t, "rows deleted under their handlers", lab.F("jobs", jobs), lab.F("deleted", deleted), lab.F("completed", completed))
	})
}

// S024: rows that no rule allows, an owner or an end that is missing or makes no sense, are written by
// hand while workers work. The database refuses each of them, and nobody's lease is the worse for it.
func TestRowsThatNoRuleAllowsAreRefusedWhileWorkersWork(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		rec := lab.StartRecorder(t)
		fleet := lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: rec, Processes: 2, Slots: 4, Handler: lab.Handler{Least: 100 * time.Millisecond, Duration: 200 * time.Millisecond},
		})
		fed := feed(t, fleet.Store(), 20)
		leases, refused := lab.Table(t, url, "leases"), map[string]int{}
		impossible := []string{
			"SET lease_until = NULL WHERE status = 'Processing'", "SET lease_until = 'infinity' WHERE status = 'Processing'",
			"SET lease_owner = NULL WHERE status = 'Processing'", "SET lease_owner = 'x' WHERE status = 'Pending'",
			"SET attempt = max_attempts + 1", "SET status = 'Running'",
		}
		lab.Await(t, time.Minute, "each was refused", func() bool {
			for _, what := range impossible {
				rows, err := lab.Try(t, url, "UPDATE "+leases+" "+what)
				if err == nil && rows > 0 {
					t.Fatalf("%s changed %d rows", what, rows)
				}
				if err != nil {
					refused[what]++
				}
			}
			return len(refused) == len(impossible)
		})
		jobs := fed.stop()
		fleet.Finish(time.Minute)
		fleet.Shutdown()
		a := lab.Audit(t, url, rec, lab.AuditOptions{Jobs: jobs, Fleets: []*lab.Fleet{fleet}})
		lab.Report(t, "impossible rows", append([]lab.Fact{lab.F("refused", len(refused))}, a.Facts()...)...)
	})
}

func status(t *testing.T, store pacht.Reader, id pacht.ID) pacht.Status {
	t.Helper()
	job, err := store.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job.Status
}
