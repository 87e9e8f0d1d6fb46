package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestHandlersThatHoldTheWholePoolStarveNoLease(t *testing.T) { // S010
	s, pool := storeAt(t, pgtest.Database(t), Config{}, func(cfg *pgxpool.Config) { cfg.MaxConns = 4 })
	enqueue(t, s, 8)
	jobs := claim(t, s, 4)
	for range 4 { // each handler has a connection, and keeps it
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	asking, stop := context.WithCancel(t.Context())
	var askers sync.WaitGroup
	for range 500 {
		askers.Go(func() { _, _ = s.Job(asking, jobs[0].ID) })
	}
	defer askers.Wait()
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 3 {
		for _, j := range jobs {
			renewed, err := s.Renew(ctx, []pacht.Ref{j.Ref()})
			if err != nil || renewed.Rows[0].State != pacht.RenewExtended {
				t.Fatalf("renewed %+v, %v", renewed, err)
			}
		}
	}
	_, claimErr := s.Claim(ctx, request("owner", 1))
	_, passErr := s.Expire(ctx, pacht.ExpireRequest{By: "w", Limit: 1, Period: time.Second})
	stepErr := s.SetStep(ctx, jobs[0].Ref(), "a", nil)
	beatErr := s.Beat(ctx, pacht.WorkerInfo{Owner: "o", BeatEvery: time.Second})
	answers, settleErr := s.Settle(ctx, settlements(jobs, pacht.OutcomeCompleted))
	_, ledgerErr := s.Attempts(ctx, jobs[0].ID)
	if err := errors.Join(claimErr, passErr, stepErr, beatErr, settleErr, ledgerErr, answers[0].Err); err != nil {
		t.Error(err)
	}
}

func TestEnqueueThatGetsNoConnectionOfThePoolSaysThatAllAreInUse(t *testing.T) {
	s, pool := storeAt(t, pgtest.Database(t), Config{}, func(cfg *pgxpool.Config) { cfg.MaxConns = 1 })
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, n := range []int{1, 2, copyLeast} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := s.Enqueue(ctx, slices.Collect(inARow(n)))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pacht.ErrUnknown) || !strings.Contains(err.Error(), "all 1 connections of the pool are in use") {
			t.Errorf("%d jobs: %v", n, err)
		}
	}
}

func TestOwnConnectionsAreFourAndOpenedWhenNeeded(t *testing.T) {
	s, pool := storeAt(t, pgtest.Database(t), Config{}, func(cfg *pgxpool.Config) { cfg.MaxConns, cfg.MinConns = 1, 1 })
	enqueue(t, s, 40)
	open := func() int32 { return s.own.Stat().TotalConns() + s.renewal.Stat().TotalConns() }
	if open() != 0 {
		t.Errorf("%d connections before any was needed", open())
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			got, err := s.Claim(t.Context(), request("owner", 1))
			if err != nil || len(got.Jobs) != 1 {
				t.Errorf("claim %+v, %v", got, err)
				return
			}
			if _, err := s.Renew(t.Context(), []pacht.Ref{got.Jobs[0].Ref()}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := open(); n > 4 || pool.Stat().TotalConns() != 1 {
		t.Errorf("%d connections of our own, %d of the caller's", n, pool.Stat().TotalConns())
	}
}

func TestColumnsMayChangeUnderARunningStore(t *testing.T) { // S048
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			s, pool := storeAt(t, pgtest.Database(t), Config{}, mode(m))
			work := func() {
				t.Helper()
				if err := lives(t, s, m.String()+time.Now().String(), 3); err != nil {
					t.Fatal(err)
				}
				readAll(t, s, enqueue(t, s, 1)[0])
			}
			work()
			execute(t, pool, `ALTER TABLE pacht.jobs ADD COLUMN more text; ALTER TABLE pacht.leases ADD COLUMN more text DEFAULT 'x';
				ALTER TABLE pacht.attempts ADD COLUMN more text`)
			work()
			execute(t, pool, `DROP VIEW pacht.job_status; ALTER TABLE pacht.jobs ALTER COLUMN max_attempts TYPE bigint;
				ALTER TABLE pacht.leases ALTER COLUMN attempt TYPE bigint; ALTER TABLE pacht.leases ALTER COLUMN priority TYPE integer`)
			work()
			for range 4 {
				execute(t, pool, "DEALLOCATE ALL")
			}
			work()
		})
	}
}
