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

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/pgserver"
)

// steered is a server of PostgreSQL whose clock the test sets: libfaketime stands between it
// and the system.
type steered struct {
	*testing.T
	file string
	url  string
}

func startSteered(t *testing.T) *steered {
	t.Helper()
	var library string
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			library = found[0]
		}
	}
	if library == "" {
		t.Fatal("no libfaketime found, with which the server's clock is set: install the package of your system (apt-get install faketime)")
	}
	c := &steered{T: t, file: filepath.Join(publicFolder(t), "offset")}
	c.off(0)
	// Its monotonic clock runs on, as it does when somebody sets the time of a machine.
	server, err := pgserver.StartWith(t.Context(), []string{
		"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1",
	}, "fsync=off", "full_page_writes=off", "autovacuum=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Remove(); err != nil {
			t.Error(err)
		}
	})
	if c.url, err = server.Create(t.Context(), "steered"); err != nil {
		t.Fatal(err)
	}
	return c
}

// off sets the server's clock so far off ours.
func (c *steered) off(d time.Duration) {
	c.Helper()
	next := c.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int(d.Seconds())), 0o644); err != nil {
		c.Fatal(err)
	}
	if err := os.Rename(next, c.file); err != nil { // never half a file
		c.Fatal(err)
	}
}

// seems checks that the server's clock is so far off ours.
func (c *steered) seems(s pacht.Reader, d time.Duration) {
	c.Helper()
	now, err := s.Now(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	if off := time.Until(now) - d; off.Abs() > 500*time.Millisecond {
		c.Fatalf("the server's clock is %s off, want %s: nothing would be proved", time.Until(now), d)
	}
}

// R3, R6, R8, R9: the database's clock is stepped forward. By less than what is left of the
// leases: nothing happens. By more: they are over, as R6 says; each costs its job a crash and a
// second run, which may begin before the first holder has learnt of it with its next renewal;
// what that one writes is refused. Nothing is lost, parked, or completed twice.
func TestADatabasesClockThatIsSetForwardLosesNothing(t *testing.T) {
	t.Parallel()
	c := startSteered(t)
	base := crew.Migrated(t, c.url)
	const ttl, jobs = 3 * time.Second, 8
	var seen crew.Runs
	var workers []*crew.Running
	for range 2 {
		workers = append(workers, crew.Start(t, base, crew.Config("forward", jobs, seen.Handle)))
	}
	begin := func(ms int) []pacht.ID {
		t.Helper()
		ids := crew.EnqueueTasks(t, base, slices.Repeat([]crew.Task{{Ms: ms}}, jobs), pacht.Queue("forward"), pacht.TTL(ttl))
		lab.Await(t, 20*time.Second, "all run", func() bool { return workers[0].Status().Held+workers[1].Status().Held == jobs })
		return ids
	}
	ids := begin(1500)
	c.off(time.Second)
	c.seems(base, time.Second)
	crew.Finished(t, base, 20*time.Second, "forward")
	if got := crew.Outcomes(t, base, ids); got[pacht.OutcomeCompleted] != jobs || len(got) > 1 {
		t.Errorf("after a step of a second: %v", got)
	}
	seen.Once(t, ids)

	ids = begin(2500)
	c.off(10 * time.Minute)
	c.seems(base, 10*time.Minute)
	crew.Finished(t, base, 40*time.Second, "forward")
	got := crew.Outcomes(t, base, ids)
	if got[pacht.OutcomeExpired] == 0 || got[pacht.OutcomeCompleted] != jobs {
		t.Errorf("after a step of ten minutes: %v", got)
	}
	longest := time.Duration(0)
	for _, id := range ids {
		list := seen.Of(id)
		for i := 1; i < len(list); i++ {
			longest = max(longest, list[i-1].End.Sub(list[i].Begin))
		}
		attempts, err := base.Attempts(t.Context(), id)
		if err != nil || len(attempts) > 2 {
			t.Errorf("job %d: %+v, %v", id, attempts, err)
		}
	}
	// A renewal every third of the TTL, and the answer's way.
	if longest > ttl/3+time.Second {
		t.Errorf("two runs of one job were side by side for %s, want at most a renewal period", longest)
	}
	crew.Checked(t, base)
	lab.Report(t, "room/database clock forward", lab.F("jobs", jobs), lab.F("expired", got[pacht.OutcomeExpired]), lab.F("side by side at most", longest))
}

// R6, R8: the database's clock is set back by an hour. Who holds a lease goes on, and nothing
// runs twice. What is not promised, and shown: what was due by the old clock, and leases of the
// dead, wait until the clock is there again; then they go on as if nothing had been.
func TestADatabasesClockThatIsSetBackOnlyMakesThingsWait(t *testing.T) {
	t.Parallel()
	c := startSteered(t)
	base := crew.Migrated(t, c.url)
	const ttl, jobs = 1500 * time.Millisecond, 8
	orphan := crew.Enqueue(t, base, 1, pacht.Queue("orphan"), pacht.TTL(ttl))
	if claims, err := base.Claim(t.Context(), pacht.ClaimRequest{Owner: "dead", Queue: "orphan", Kinds: []string{"task"}, Limit: 1}); err != nil || len(claims.Jobs) != 1 {
		t.Fatalf("claimed %d, %v", len(claims.Jobs), err)
	}
	var seen crew.Runs
	cfg := crew.Config("back", jobs, seen.Handle)
	cfg.Queues["orphan"] = 1
	w := crew.Start(t, base, cfg)
	ids := crew.EnqueueTasks(t, base, slices.Repeat([]crew.Task{{Ms: 3000}}, jobs), pacht.Queue("back"), pacht.TTL(ttl))
	later := crew.Enqueue(t, base, 1, pacht.Queue("back"), pacht.RunIn(2*time.Second))
	lab.Await(t, 20*time.Second, "all run", func() bool { return w.Status().Held >= jobs })
	c.off(-time.Hour)
	c.seems(base, -time.Hour)
	lab.Await(t, 20*time.Second, "the held ones are done", func() bool { return seen.Len() >= jobs && w.Status().Held == 0 })
	fresh := crew.Enqueue(t, base, 3, pacht.Queue("back"))
	lab.Await(t, 20*time.Second, "new ones are done", func() bool { return len(seen.Of(fresh[2])) > 0 && w.Status().Held == 0 })
	for _, id := range append(later, orphan...) {
		if job, err := base.Job(t.Context(), id); err != nil || job.Status.Finished() {
			t.Errorf("job %d is %s though the clock is not there yet, %v", id, job.Status, err)
		}
	}
	all := slices.Concat(ids, fresh)
	if got := crew.Outcomes(t, base, all); got[pacht.OutcomeCompleted] != len(all) || len(got) > 1 {
		t.Errorf("leases ended as %v", got)
	}
	seen.Once(t, all)
	c.off(0)
	for _, queue := range []string{"back", "orphan"} {
		crew.Finished(t, base, 30*time.Second, queue)
	}
	if got := crew.Outcomes(t, base, append(later, orphan...)); got[pacht.OutcomeCompleted] != 2 || got[pacht.OutcomeExpired] != 1 {
		t.Errorf("when the clock is there again: %v", got)
	}
	bad, err := base.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// The leases that were open over the step ended before they began, by that clock: so it says.
	for _, v := range bad {
		if !strings.Contains(v.Detail, "ended before it was claimed") {
			t.Errorf("check: %+v", v)
		}
	}
	if len(bad) == 0 {
		t.Error("no lease was open over the step: nothing was proved")
	}
}
