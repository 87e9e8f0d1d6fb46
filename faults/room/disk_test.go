package room_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/pgserver"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

// untilRefused enqueues until the full disk shows, and answers the error. What was acknowledged
// before comes too.
func untilRefused(t *testing.T, s pacht.Enqueuer, queue string) (ids []pacht.ID, err error) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		jobs := make([]pacht.NewJob, 50)
		for i := range jobs {
			jobs[i] = pacht.New(crew.Task{N: i}, pacht.Queue(queue), pacht.Metadata(map[string]string{"fill": strings.Repeat("x", 500)}))
		}
		answers, err := s.Enqueue(t.Context(), jobs)
		if err != nil {
			return ids, err
		}
		for _, a := range answers {
			ids = append(ids, a.ID)
		}
	}
	t.Fatal("the full disk never showed")
	return nil, nil
}

// S022, S058: the tables' disk is full while workers work. The errors say so, nothing half is
// written, no job counts as failed or crashed, and all goes on by itself when there is room;
// no job runs twice for it.
func TestAFullDiskIsSaidClearlyAndWorkGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dir := smallDisk(t, 48)
		admin := adminOf(t, pgtest.Database(t))
		space := fmt.Sprintf("pacht_small_%d", time.Now().UnixNano())
		execute(t, admin, fmt.Sprintf("CREATE TABLESPACE %s LOCATION '%s'", space, dir))
		t.Cleanup(func() { execute(t, admin, "DROP TABLESPACE "+space) }) // after the database in it
		database := pgtest.Database(t)
		execute(t, admin, fmt.Sprintf(`ALTER DATABASE %q SET TABLESPACE %s`, nameOf(t, database), space))
		fullDisk(t, crew.Migrated(t, database), dir, "No space left on device")
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := smallDisk(t, 48)
		s, err := sqlite.Open(filepath.Join(dir, "pacht.db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if _, err := s.MigrateUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		fullDisk(t, s, dir, "the disk is full, nothing was written")
	})
}

func fullDisk(t *testing.T, s pacht.Store, dir, saying string) {
	t.Helper()
	const queue = "full"
	jobs := lab.Scale(300, 3000)
	tasks := make([]crew.Task, jobs)
	for i := range tasks {
		tasks[i].Ms = 5
	}
	ids := crew.EnqueueTasks(t, s, tasks, pacht.Queue(queue))
	var seen crew.Runs
	w := crew.Start(t, s, crew.Config(queue, 4, seen.Handle))
	lab.Await(t, 20*time.Second, "work has begun", func() bool { return seen.Len() > 20 })
	for range lab.Scale(1, 3) {
		free := fill(t, dir)
		before := w.Status().Errors
		more, err := untilRefused(t, s, "filling")
		if !strings.Contains(fmt.Sprint(err), saying) || errors.Is(err, pacht.ErrUnknown) {
			t.Errorf("the refused enqueue: %v, want %q and no doubt", err, saying)
		}
		crew.Checked(t, s)
		for _, id := range more {
			if job, err := s.Job(t.Context(), id); err != nil || job.Status != pacht.Pending {
				t.Errorf("acknowledged job %d is %s: %v", id, job.Status, err)
			}
		}
		if seen.Len() < jobs {
			lab.Await(t, 20*time.Second, "the worker meets the full disk", func() bool {
				return w.Status().Errors > before || seen.Len() == jobs
			})
		}
		free()
		crew.Enqueue(t, s, 1, pacht.Queue("filling"))
	}
	crew.Finished(t, s, 60*time.Second, queue)
	lab.Await(t, 20*time.Second, "the worker is healthy again", func() bool { return w.Status().Unreachable == nil })
	if got := crew.Outcomes(t, s, ids); got[pacht.OutcomeCompleted] != jobs || len(got) != 1 {
		t.Errorf("leases ended as %v", got)
	}
	seen.Once(t, ids)
	crew.Checked(t, s)
	lab.Report(t, "room/disk "+filepath.Base(t.Name()), lab.F("jobs", jobs), lab.F("failed calls", w.Status().Errors))
	if w.Status().Errors == 0 {
		t.Error("no call of the worker failed: nothing was proved")
	}
}

// S022, S042: the whole cluster's disk is full, its log too: PostgreSQL goes down, and comes
// back when there is room and somebody starts it. Nothing that was
// acknowledged is missing then, and workers go on by themselves. In the long form.
func TestAServerThatDiesOfAFullDiskComesBackWithAllThatWasAcknowledged(t *testing.T) {
	if !lab.Long() {
		t.Log("in the long form only: PostgreSQL needs a cluster of its own for it")
		return
	}
	dir := smallDisk(t, 300)
	t.Setenv("TMPDIR", dir)
	server := pgtest.NewServer(t, "min_wal_size=32MB", "max_wal_size=4GB")
	database := server.Database(t)
	s := crew.Migrated(t, database)
	const queue = "down"
	ids := crew.EnqueueTasks(t, s, make([]crew.Task, 2000), pacht.Queue(queue))
	var seen crew.Runs
	slow := func(ctx context.Context, job *pacht.Job[crew.Task]) error {
		time.Sleep(5 * time.Millisecond) // work that goes on over the outage
		return seen.Handle(ctx, job)
	}
	w := crew.Start(t, crew.Open(t, database, postgres.Config{}), crew.Config(queue, 2, slow))
	lab.Await(t, 20*time.Second, "work has begun", func() bool { return seen.Len() > 20 })
	free := fill(t, dir)
	more, err := untilRefused(t, s, queue)
	t.Logf("after %d more jobs: %v", len(more), err)
	lab.Await(t, 60*time.Second, "the server goes down", func() bool {
		// What is written to the log alone needs another file of it at last.
		err := pgserver.Execute(t.Context(), database, "SELECT pg_logical_emit_message(true, 'fill', repeat('x', 4000000))")
		down := err != nil && !strings.Contains(err.Error(), "53100")
		if down {
			t.Log(err)
		}
		return down
	})
	lab.Await(t, 60*time.Second, "the worker cannot reach the server, or is done", func() bool {
		return w.Status().Unreachable != nil || seen.Len() == len(ids)
	})
	free()
	server.Kill(t) // if it is still there
	server.Start(t)
	crew.Finished(t, s, 120*time.Second, queue)
	all := append(ids, more...)
	if got := crew.Outcomes(t, s, all); got[pacht.OutcomeCompleted] != len(all) || got[pacht.OutcomeFailed] > 0 {
		t.Errorf("leases ended as %v", got)
	}
	seen.Alone(t)
	crew.Checked(t, s)
}
