package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// drain is a process whose worker has so many slots and a handler that does nothing. It ends
// when no job is unfinished.
func drain(ctx context.Context, path string, slots int) error {
	s, err := Open(path, Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := worker.New(s, worker.Config{
		Queues: map[string]int{"default": slots}, Poll: 50 * time.Millisecond, Watch: watch.Config{Period: time.Second},
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Handlers: []worker.Handler{worker.HandleKind("charge", worker.HandlerOptions{}, func(context.Context, *pacht.Held) error { return nil })},
	})
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	run, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(run) }()
	for {
		left, err := texts(ctx, s.read, "SELECT EXISTS (SELECT 1 FROM pacht_leases)")
		if err != nil || left[0][0] == "0" {
			end()
			return errors.Join(err, <-ended)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// startThree starts processes in a role, and lets them go on when all are ready.
func startThree(tb testing.TB, role, path string) []*child {
	var children []*child
	for range 3 {
		children = append(children, startChild(tb, role, path))
	}
	for _, c := range children {
		c.goOn(tb)
	}
	return children
}

// S001, R1, R4: three processes at one file, each killed as by kill -9 in the middle of its work,
// leave no rule broken and no job undone.
func TestThreeProcessesThatAreKilledLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	s := openStore(t, path, Config{}, true)
	const jobs = 1000
	batch := make([]pacht.NewJob, jobs)
	for i := range batch {
		batch[i] = newJob(i)
		batch[i].TTL, batch[i].MaxCrashes, batch[i].MaxAttempts = 3*time.Second, 1000, 1000
	}
	if _, err := s.Enqueue(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	settled := func() string {
		n, err := texts(t.Context(), s.read, "SELECT count(*) FROM pacht_attempts WHERE outcome = 'Completed'")
		if err != nil {
			t.Fatal(err)
		}
		return n[0][0]
	}
	for killed, c := range startThree(t, "work", path) {
		at := settled()
		within(t, 2*time.Minute, "they work", func() bool { return settled() != at || settled() == fmt.Sprint(jobs) })
		said := c.kill()
		t.Logf("killed %d, %s settled %s", killed, settled(), said)
	}
	for _, c := range startThree(t, "work", path) {
		if err := c.Wait(); err != nil {
			t.Errorf("child: %v: %s", err, c.stderr.String())
		}
	}
	if settled() != fmt.Sprint(jobs) {
		t.Errorf("%s jobs completed, want %d", settled(), jobs)
	}
	mustCheck(t, s)
}

// BenchmarkDrainBy3 is three processes on one file. The time is the ledger's, from the first
// claim to the last settle; share is what the slowest process did of the fastest.
func BenchmarkDrainBy3(b *testing.B) {
	path := filepath.Join(b.TempDir(), "pacht.db")
	s, err := Open(path, Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := s.MigrateUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	fill(b, s, b.N)
	b.ResetTimer()
	var used time.Duration
	for _, c := range startThree(b, "drain", path) {
		if err := c.Wait(); err != nil {
			b.Errorf("child: %v: %s", err, c.stderr.String())
		}
		used += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	b.StopTimer()
	rows, err := texts(b.Context(), s.read, "SELECT owner, count(*), min(claimed_at), max(ended_at) FROM pacht_attempts GROUP BY owner")
	if err != nil {
		b.Fatal(err)
	}
	var most, least, all, from, to int64
	for i, r := range rows {
		var n, first, last int64
		if _, err := fmt.Sscan(strings.Join(r[1:], " "), &n, &first, &last); err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			least, from = n, first
		}
		most, least, all, from, to = max(most, n), min(least, n), all+n, min(from, first), max(to, last)
	}
	if all != int64(b.N) || len(rows) > 3 {
		b.Errorf("%d leases for %d jobs by %d processes", all, b.N, len(rows))
	}
	if len(rows) < 3 {
		least = 0
	}
	b.ReportMetric(float64(b.N)/(float64(to-from+1)/1000), "jobs/s")
	b.ReportMetric(used.Seconds()*100_000/float64(b.N), "cpu-s/100k")
	b.ReportMetric(float64(least)/float64(most), "share")
}
