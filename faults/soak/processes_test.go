package soak

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// Two processes stay, a third is killed or stopped again and again, and jobs pass through: what
// the two have, what the server has of connections, and what stands in the tables stays as it
// was. S061: the table of leases stays as small as the work that waits.
func TestProcessesThatComeAndGoLetNothingGrow(t *testing.T) {
	lab.OnBoth(t, func(t *testing.T, url string) {
		t.Parallel()
		q, store := openTables(t, url), lab.Open(t, url)
		start := func() (*lab.Process, string) {
			p := lab.Spawn(t, "laborer", order{Database: url})
			var s said
			p.Said(&s)
			return p, s.Addr
		}
		first, at := start()
		second, beside := start()
		third, _ := start()
		restarts, jobs := lab.Scale(6, 50), lab.Scale(9_000, 200_000)
		done := feed(t, store, jobs)
		s := series{}
		for n := 1; n <= restarts; n++ {
			lab.Await(t, 120*time.Second, "a part of the jobs is done", func() bool { return done() >= jobs*n/(restarts+1) })
			if n%2 == 0 {
				third.Kill()
			} else {
				third.Signal(syscall.SIGTERM)
				if code, _, err := third.Wait(20 * time.Second); err != nil || code != 0 {
					t.Fatalf("a laborer that was told to stop: code %d, %v", code, err)
				}
			}
			third, _ = start()
			q.vacuum()
			s.sample(t, q, at)
			s.sample(t, nil, beside)
		}
		lab.Await(t, 120*time.Second, "all jobs are done", func() bool { return done() >= jobs })
		facts := s.steady(t, map[string]bound{
			"goroutines": {0, 60}, "files": {0, 8}, "heap": {25, 4096}, "resident": {25, 8192},
			"connections": {0, 4}, "leases": {50, 1000}, "leases_kb": {50, 2048},
			"jobs": {100, jobs / 4}, "jobs_kb": {100, 8192}, "attempts_kb": {100, 8192}, "sleepers": {0, restarts + 3}, "workers": {0, restarts + 3},
		})
		for _, p := range []*lab.Process{first, second, third} {
			p.Signal(syscall.SIGTERM)
		}
		for _, p := range []*lab.Process{first, second, third} {
			if code, _, err := p.Wait(20 * time.Second); err != nil || code != 0 {
				t.Errorf("a laborer that was told to stop: code %d, %v", code, err)
			}
		}
		// Those that were killed could not say so.
		if running := q.running(); running > restarts/2 {
			t.Errorf("%d processes have not said that they ended, and %d were killed", running, restarts/2)
		}
		if n := q.connections(); n > 2 { // the store of this test
			t.Errorf("%d connections are left", n)
		}
		violations, err := store.Check(t.Context())
		if err != nil || len(violations) > 0 {
			t.Errorf("check: %v, %v", violations, err)
		}
		q.empties(store)
		lab.Report(t, "processes killed and restarted", append(facts, lab.F("restarts", restarts), lab.F("jobs_done", jobs))...)
	})
}

// sample takes the state of a process, and that of the database.
func (s series) sample(t *testing.T, q *tables, addr string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var now state
	if err := json.NewDecoder(conn).Decode(&now); err != nil {
		t.Fatal(err)
	}
	s.add("goroutines", now.Goroutines)
	s.add("files", now.Files)
	s.add("heap", now.Heap/1024)
	s.add("resident", now.Resident/1024)
	if q == nil {
		return
	}
	s.add("connections", q.connections())
	s.add("leases", q.rows("leases"))
	s.add("leases_kb", q.size("leases"))
	s.add("jobs", q.rows("jobs"))
	s.add("jobs_kb", q.size("jobs"))
	s.add("attempts_kb", q.size("attempts"))
	s.add("sleepers", q.sleepers())
	s.add("workers", q.rows("workers"))
}

// feed enqueues jobs as fast as they are done, so that about two thousand wait, and answers
// how many are done.
func feed(t *testing.T, store pacht.Store, jobs int) (done func() int) {
	t.Helper()
	const batch, waiting = 500, 2000
	var mu sync.Mutex
	enqueued, unfinished := 0, 0
	ctx, stop := context.WithCancel(t.Context())
	var feeding sync.WaitGroup
	feeding.Go(func() {
		for ctx.Err() == nil {
			counts, err := store.Counts(ctx)
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("count: %v", err)
				}
				return
			}
			n := 0
			for _, c := range counts {
				if !c.Status.Finished() {
					n += int(c.Jobs)
				}
			}
			mu.Lock()
			unfinished = n
			more := min(jobs-enqueued, batch)
			mu.Unlock()
			if n > waiting || more == 0 {
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
				continue
			}
			list := make([]pacht.NewJob, more)
			for i := range list {
				list[i] = pacht.New(lab.Work{N: i}, pacht.TTL(2*time.Second), pacht.MaxCrashes(pacht.MaxMaxCrashes))
			}
			if _, err := store.Enqueue(ctx, list); err != nil {
				if ctx.Err() == nil {
					t.Errorf("enqueue: %v", err)
				}
				return
			}
			mu.Lock()
			enqueued += more
			unfinished += more
			mu.Unlock()
		}
	})
	t.Cleanup(func() { stop(); feeding.Wait() })
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return enqueued - unfinished
	}
}
