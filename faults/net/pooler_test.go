package net_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/pgserver"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
)

// producer enqueues one keyed job after the other, in batches, and repeats each until it is
// acknowledged, as a producer does that was promised that it may (R11).
type producer struct {
	mu    sync.Mutex
	acked []pacht.ID
	lost  int // enqueues that went unanswered, or failed
}

func (p *producer) run(ctx context.Context, s pacht.Enqueuer, queue string) {
	for n := 0; ctx.Err() == nil; n++ {
		jobs := make([]pacht.NewJob, 1+n%3)
		for i := range jobs {
			jobs[i] = pacht.New(crew.Task{N: n, Ms: 5}, pacht.Queue(queue), pacht.IdempotencyKey(fmt.Sprintf("%s %d %d", queue, n, i)))
		}
		for ctx.Err() == nil {
			answers, err := s.Enqueue(ctx, jobs)
			p.mu.Lock()
			if err != nil {
				p.lost++
			}
			for _, a := range answers {
				if a.Err == nil && err == nil {
					p.acked = append(p.acked, a.ID)
				}
			}
			p.mu.Unlock()
			if err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond) // a pooler that is away
		}
	}
}

// S047, S048, S046: PgBouncer in transaction mode is killed and started again under load, again
// and again, while a column is added, changes its type, and plans are thrown away. No
// acknowledged job is missing, none runs twice, none is taken for crashed.
func TestPoolerThatIsKilledUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	url, base := crew.Database(t)
	const queue = "pooler"
	bouncer, err := pgserver.StartBouncer(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bouncer.Remove(); err != nil {
			t.Error(err)
		}
	})
	var seen crew.Runs
	var workers []*crew.Running
	for range 2 {
		workers = append(workers, crew.Start(t, crew.Open(t, bouncer.URL(), postgres.Config{}), crew.Config(queue, 4, seen.Handle)))
	}
	ctx, stop := context.WithCancel(t.Context())
	var made producer
	var producing sync.WaitGroup
	through := crew.Open(t, bouncer.URL(), postgres.Config{})
	producing.Go(func() { made.run(ctx, through, queue) })
	changes := []string{
		"ALTER TABLE pacht.jobs ADD COLUMN note text",
		"ALTER TABLE pacht.jobs ALTER COLUMN note TYPE varchar(20)",
		"ALTER TABLE pacht.leases ADD COLUMN note integer",
		"ALTER TABLE pacht.leases ALTER COLUMN note TYPE bigint",
	}
	kills := lab.Scale(4, 25)
	for i := range kills {
		time.Sleep(300 * time.Millisecond) // work
		if i < len(changes) {
			if err := pgserver.Execute(t.Context(), url, changes[i]); err != nil {
				t.Error(err)
			}
		}
		if err := bouncer.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i%3) * 100 * time.Millisecond) // without a pooler
		if err := bouncer.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	stop()
	producing.Wait()
	crew.Finished(t, base, 60*time.Second, queue)
	seen.Alone(t)
	got := crew.Outcomes(t, base, made.acked)
	if got[pacht.OutcomeCompleted] != len(made.acked) || got[pacht.OutcomeExpired] > 0 || got[pacht.OutcomeFailed] > 0 {
		t.Errorf("%d jobs were acknowledged, leases ended as %v", len(made.acked), got)
	}
	seen.Once(t, made.acked)
	failed := int64(0)
	for _, w := range workers {
		failed += w.Status().Errors
	}
	if failed == 0 || len(made.acked) == 0 {
		t.Errorf("%d jobs acknowledged, %d calls failed: nothing was proved", len(made.acked), failed)
	}
	crew.Checked(t, base)
	lab.Report(t, "net/pooler", lab.F("jobs", len(made.acked)), lab.F("kills", kills), lab.F("failed calls", failed), lab.F("unanswered enqueues", made.lost))
}

// S043: 6 workers of 50 slots each start together against a server of 60 connections of which
// others have 50; then the server restarts. Whoever is refused tries again; a worker never has more than
// its pool and what its store opens itself, however many slots it has.
func TestTooManyConnectionsAreRefusedAndTriedAgain(t *testing.T) {
	t.Parallel()
	processes := lab.Scale(3, 6)
	const slots, each = 50, 4 + 5 // a pool of 4, and what the store opens itself
	server := pgtest.NewServer(t, "max_connections=60")
	url := server.Database(t)
	base := crew.Migrated(t, url)
	ids := crew.EnqueueTasks(t, base, make([]crew.Task, lab.Scale(1500, 3000)))
	_ = base.Close()

	var others []func() // connections of somebody else
	for range 50 {
		release, err := occupy(t.Context(), url)
		if err != nil {
			break
		}
		others = append(others, release)
	}
	var seen crew.Runs
	var workers []*crew.Running
	for i := range processes {
		workers = append(workers, crew.Start(t, crew.Lazily(t, named(t, url, fmt.Sprint("worker-", i)), 4), crew.Config(pacht.DefaultQueue, slots, seen.Handle)))
	}
	lab.Await(t, 20*time.Second, "somebody is refused", func() bool {
		for _, w := range workers {
			if w.Status().Unreachable != nil {
				return true
			}
		}
		return false
	})
	for _, release := range others {
		release()
	}
	probe := crew.Lazily(t, url, 1)
	lab.Await(t, 20*time.Second, "work has begun", func() bool {
		waiting, err := probe.Waiting(t.Context())
		return err == nil && (len(waiting) == 0 || waiting[0].Jobs < int64(len(ids))) // or is over: quick machines do
	})
	most, peak := 0, 0 // sessions of one worker, and of all
	sample := func() {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return // refused, or the server is away
		}
		defer conn.Close(context.Background())
		var one, all int
		err = conn.QueryRow(t.Context(), `SELECT coalesce(max(n), 0), coalesce(sum(n), 0)::bigint FROM (
			SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'worker-%' GROUP BY application_name) AS x (n)`).Scan(&one, &all)
		if err != nil {
			t.Logf("count sessions: %v", err) // the server is being stopped
			return
		}
		most, peak = max(most, one), max(peak, all)
	}
	sample()
	server.Stop(t)
	server.Start(t)
	lab.Await(t, 60*time.Second, "all jobs are finished", func() bool {
		sample()
		counts, err := probe.Counts(t.Context())
		return err == nil && len(counts) == 0
	})
	seen.Alone(t)
	if got := crew.Outcomes(t, probe, ids); got[pacht.OutcomeExpired] > 0 || got[pacht.OutcomeFailed] > 0 {
		t.Errorf("leases ended as %v", got)
	}
	crew.Checked(t, probe)
	if most == 0 || most > each {
		t.Errorf("%d sessions of one worker, want at most %d", most, each)
	}
	for i, w := range workers {
		if err := w.End(); err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	lab.Report(t, "net/connections", lab.F("jobs", len(ids)), lab.F("workers", processes), lab.F("slots", slots), lab.F("peak sessions", peak), lab.F("peak of one", most))
}
