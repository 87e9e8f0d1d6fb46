package soak

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/worker"
)

// A process that starts and stops workers again and again, each on a store of its own, comes
// back to where it was: no goroutine, connection, file handle, row of a sleeper or of a running
// worker is left, and no memory.
func TestWorkersThatComeAndGoInOneProcessLeaveNothing(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		q := openTables(t, url)
		feed := lab.Open(t, url)
		lab.Enqueue(t, feed, 1)
		cycle(t, url, q, feed, 1) // opens what is opened once
		base, err := look()
		if err != nil {
			t.Fatal(err)
		}
		connections := q.connections()
		s, cycles, jobs := series{}, lab.Scale(6, 50), lab.Scale(200, 400)
		for range cycles {
			cycle(t, url, q, feed, jobs)
			var now state
			lab.Within(10*time.Second, func() bool { // what ends behind a call that has returned may take a moment
				if now, err = look(); err != nil {
					t.Fatal(err)
				}
				return now.Goroutines <= base.Goroutines && now.Files <= base.Files+3 && q.connections() <= connections
			})
			s.add("goroutines", now.Goroutines)
			s.add("files", now.Files)
			s.add("connections", q.connections())
			s.add("heap", now.Heap/1024)
			s.add("resident", now.Resident/1024)
			s.add("leases", q.rows("leases"))
			s.add("sleepers", q.sleepers())
			s.add("running", q.running())
		}
		facts := s.steady(t, map[string]bound{
			"goroutines": {}, "files": {0, 3}, "connections": {}, "leases": {}, "sleepers": {}, "running": {},
			"heap": {10, 1024}, "resident": {20, 8192},
		})
		for name, most := range map[string]int{
			"goroutines": base.Goroutines, "files": base.Files + 3, "connections": connections, "leases": 0, "sleepers": 0, "running": 0,
		} {
			if last := s[name][cycles-1]; last > most {
				t.Errorf("%s: %d after the last cycle, %d before the first", name, last, most)
			}
		}
		q.empties(feed)
		lab.Report(t, "workers started and stopped in one process", append(facts, lab.F("cycles", cycles), lab.F("jobs", cycles*jobs))...)
	})
}

// cycle runs a worker on a store of its own until so many jobs are done.
func cycle(t *testing.T, url string, q *tables, feed database.Database, jobs int) {
	t.Helper()
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	w, err := worker.New(db, config(&done))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	lab.Enqueue(t, feed, jobs)
	ok := lab.Within(30*time.Second, func() bool { return done.Load() >= int64(jobs) && q.rows("leases") == 0 })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the worker ended: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close the store: %v", err)
	}
	if !ok {
		t.Fatalf("%d of %d jobs were done", done.Load(), jobs)
	}
}
