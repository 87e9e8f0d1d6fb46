package room_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

// S025: while 50 jobs run, the server comes back in recovery, as a standby that cannot write,
// and is promoted seconds later. What cannot be written is waited for; afterwards all 50 end
// completed with no SQL by anybody. Their leases end meanwhile, and no two owners run one at a
// time.
func TestAServerThatComesBackAsAStandbyIsWaitedForUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	database := server.Database(t)
	base := crew.Migrated(t, database)
	const queue, jobs = "standby", 50
	ids := crew.EnqueueTasks(t, base, slices.Repeat([]crew.Task{{Ms: 2500}}, jobs), pacht.Queue(queue), pacht.TTL(2*time.Second))
	var seen crew.Runs
	var workers []*crew.Running
	for range 2 {
		workers = append(workers, crew.Start(t, crew.Open(t, database, postgres.Config{}), crew.Config(queue, 25, seen.Handle)))
	}
	lab.Await(t, 20*time.Second, "all run", func() bool { return workers[0].Status().Held+workers[1].Status().Held == jobs })
	data := scalar[string](t, database, "SHOW data_directory")
	server.Stop(t)
	signal := filepath.Join(data, "standby.signal")
	if err := os.WriteFile(signal, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	server.Start(t)
	if !scalar[bool](t, database, "SELECT pg_is_in_recovery()") {
		t.Fatal("the server is no standby")
	}
	lab.Await(t, 20*time.Second, "an enqueue on a standby is refused in words", func() bool {
		// The first may still meet a connection that the stop has broken.
		_, err := base.Enqueue(t.Context(), []pacht.NewJob{pacht.New(crew.Task{}, pacht.Queue(queue))})
		return strings.Contains(fmt.Sprint(err), "during recovery")
	})
	time.Sleep(time.Duration(lab.Scale(2500, 15000)) * time.Millisecond) // the outage itself
	for _, w := range workers {
		if err := w.Status().Unreachable; err == nil {
			t.Error("a worker on a standby says that all is well")
		}
	}
	if !scalar[bool](t, database, "SELECT pg_promote()") {
		t.Fatal("not promoted")
	}
	crew.Finished(t, base, 40*time.Second, queue)
	seen.Alone(t)
	got := crew.Outcomes(t, base, ids)
	for _, id := range ids {
		if job, err := base.Job(t.Context(), id); err != nil || job.Attempt > 2 {
			t.Errorf("job %d used up %d attempts, %v", id, job.Attempt, err)
		}
	}
	crew.Checked(t, base)
	lab.Report(t, "room/standby", lab.F("jobs", jobs), lab.F("outcomes", fmt.Sprint(got)))
}

// S025: sessions of a database that is set read-only for a while are refused, and so says the
// error. Nothing counts as a job's failure; and when it is writable again, sessions that began
// as read-only ones, and stay so, are not used any more.
func TestADatabaseThatIsReadOnlyForAWhileStopsNothingForGood(t *testing.T) {
	t.Parallel()
	database, base := crew.Database(t)
	admin, name := adminOf(t, database), nameOf(t, database)
	const queue = "read-only"
	ids := crew.EnqueueTasks(t, base, slices.Repeat([]crew.Task{{Ms: 20}}, 150), pacht.Queue(queue))
	var seen crew.Runs
	s := crew.Open(t, database, postgres.Config{})
	w := crew.Start(t, s, crew.Config(queue, 4, seen.Handle))
	lab.Await(t, 20*time.Second, "work has begun", func() bool { return seen.Len() > 10 })
	execute(t, admin, fmt.Sprintf(`ALTER DATABASE %q SET default_transaction_read_only = on`, name))
	execute(t, admin, fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, name))
	lab.Await(t, 20*time.Second, "the worker is refused", func() bool {
		return strings.Contains(fmt.Sprint(w.Status().Unreachable), "read-only")
	})
	var err error
	lab.Await(t, 20*time.Second, "the enqueue is refused", func() bool {
		_, err = s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(crew.Task{}, pacht.Queue(queue))})
		return strings.Contains(fmt.Sprint(err), "read-only")
	})
	execute(t, admin, fmt.Sprintf(`ALTER DATABASE %q RESET default_transaction_read_only`, name))
	crew.Finished(t, base, 30*time.Second, queue)
	if got := crew.Outcomes(t, base, ids); got[pacht.OutcomeCompleted] != len(ids) || len(got) > 1 {
		t.Errorf("leases ended as %v", got)
	}
	seen.Once(t, ids)
	crew.Checked(t, base)
}

// S025, S058: a SQLite file on a read-only file system is refused at once, in words.
func TestAReadOnlyFileIsRefusedInWords(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		readOnlyFolder(t)
		return
	}
	dir := smallDisk(t, 8)
	path := filepath.Join(dir, "pacht.db")
	s, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	crew.Enqueue(t, s, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	refusedInWords(t, path)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if s, err = sqlite.Open(path, sqlite.Config{}); err != nil {
		t.Fatalf("when it is writable again: %v", err)
	}
	defer s.Close()
	if claims, err := s.Claim(context.Background(), pacht.ClaimRequest{Owner: "a", Queue: pacht.DefaultQueue, Kinds: []string{"task"}, Limit: 10}); err != nil || len(claims.Jobs) != 3 {
		t.Errorf("claimed %d of 3, %v", len(claims.Jobs), err)
	}
}

// readOnlyFolder is what a user without root can make: for root no folder is read-only.
func readOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pacht.db")
	s, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, dir} {
		if err := os.Chmod(p, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = os.Chmod(dir, 0o755) }() // or it could not be removed
	refusedInWords(t, path)
}

func refusedInWords(t *testing.T, path string) {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Config{})
	if err == nil {
		defer s.Close()
		_, err = s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(crew.Task{})})
	}
	if err == nil || !strings.Contains(err.Error(), "writable") && !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a read-only file: %v", err)
	}
}
