package net_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/pgserver"
)

// occupy takes a connection and keeps it.
func occupy(ctx context.Context, url string) (release func(), err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	return func() { _ = conn.Close(context.Background()) }, nil
}

func scalar(t *testing.T, url, sql string) int {
	t.Helper()
	n, err := count(url, sql)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func count(url, sql string, args ...any) (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

// S045: a session has locked a due lease and the watcher's turn, and its network goes away
// without a word: the server keeps it. Claims pass over the row, other jobs are done, nobody
// waits. As long as the turn is locked nothing expires: passes answer that it is somebody else's. All
// that stood is done once the session is gone.
func TestSessionThatVanishedWithItsLocksMakesNobodyWait(t *testing.T) {
	t.Parallel()
	url, base := crew.Database(t)
	const queue, orphaned = "locked", "orphaned"
	orphan := crew.Enqueue(t, base, 1, pacht.Queue(orphaned), pacht.TTL(100*time.Millisecond))
	if claims, err := base.Claim(t.Context(), pacht.ClaimRequest{Owner: "dead", Queue: orphaned, Kinds: []string{"task"}, Limit: 1}); err != nil || len(claims.Jobs) != 1 {
		t.Fatalf("claimed %d, %v", len(claims.Jobs), err)
	}
	ids := crew.Enqueue(t, base, 20, pacht.Queue(queue))
	p := newProxy(t, url)
	conn, err := pgx.Connect(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{"BEGIN", "SELECT 1 FROM pacht.leases WHERE job_id = (SELECT min(job_id) FROM pacht.leases WHERE queue = 'locked') FOR UPDATE", "SELECT 1 FROM pacht.watch FOR UPDATE"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	plagues["silent"](p)
	var seen crew.Runs
	cfg := crew.Config(queue, 4, seen.Handle)
	cfg.Queues[orphaned] = 1
	w := crew.Start(t, base, cfg)
	lab.Await(t, 20*time.Second, "the others are done, and the orphan's lease is over", func() bool {
		waiting, err := base.Waiting(t.Context())
		return err == nil && len(waiting) == 1 && waiting[0].Jobs == 1 && w.Status().Held == 0 &&
			scalar(t, url, "SELECT count(*) FROM pacht.leases WHERE status = 'Processing' AND lease_until < clock_timestamp()") == 1
	})
	if n := scalar(t, url, "SELECT count(*) FROM pg_locks WHERE NOT granted"); n > 0 {
		t.Errorf("%d sessions wait for a lock", n)
	}
	pass, err := base.Expire(t.Context(), pacht.ExpireRequest{By: "test", Limit: 10, Period: time.Second, Force: true})
	if err != nil || pass.Turn || len(pass.Expired) > 0 {
		t.Errorf("a pass while the turn is locked: %+v, %v", pass, err)
	}
	p.heal() // ends the session at last, as keepalives of the server do
	for _, queue := range []string{queue, orphaned} {
		crew.Finished(t, base, 20*time.Second, queue)
	}
	if got := crew.Outcomes(t, base, ids); got[pacht.OutcomeCompleted] != len(ids) || len(got) > 1 {
		t.Errorf("leases ended as %v", got)
	}
	if got := crew.Outcomes(t, base, orphan); got[pacht.OutcomeExpired] != 1 || got[pacht.OutcomeCompleted] != 1 {
		t.Errorf("the orphan's leases ended as %v", got)
	}
	if n := w.Status().Errors; n > 0 {
		t.Errorf("%d calls of the worker failed", n)
	}
}

// S045, R7: the network goes away between CompleteTx and the COMMIT. The server ends the session
// when the lease's time is over, and the job is free again; the business write is not there.
func TestNetworkThatVanishesBeforeTheCommitKeepsNoJob(t *testing.T) {
	t.Parallel()
	url, base := crew.Database(t)
	if err := pgserver.Execute(t.Context(), url, "CREATE TABLE booked (job bigint)"); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, url)
	through := crew.Lazily(t, p.url, 2)
	id := crew.Enqueue(t, base, 1, pacht.Queue("half-done"), pacht.TTL(1200*time.Millisecond))[0]
	claims, err := base.Claim(t.Context(), pacht.ClaimRequest{Owner: "vanishing", Queue: "half-done", Kinds: []string{"task"}, Limit: 1})
	if err != nil || len(claims.Jobs) != 1 {
		t.Fatalf("claimed %d, %v", len(claims.Jobs), err)
	}
	conn, err := pgx.Connect(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "INSERT INTO booked VALUES ($1)", int64(id)); err != nil {
		t.Fatal(err)
	}
	if err := through.Tx(tx).SettleTx(t.Context(), pacht.Settlement{Ref: claims.Jobs[0].Ref(), Outcome: pacht.OutcomeCompleted}); err != nil {
		t.Fatal(err)
	}
	plagues["silent"](p)
	var seen crew.Runs
	crew.Start(t, base, crew.Config("half-done", 1, seen.Handle))
	crew.Finished(t, base, 20*time.Second, "half-done")
	if got := crew.Outcomes(t, base, []pacht.ID{id}); got[pacht.OutcomeExpired] != 1 || got[pacht.OutcomeCompleted] != 1 {
		t.Errorf("leases ended as %v", got)
	}
	if n, err := count(url, "SELECT count(*) FROM booked"); err != nil || n != 0 {
		t.Errorf("%d business writes stand, %v", n, err)
	}
}

// S010: behind a slow network handlers hold every connection of the pool for longer than their
// leases. Renewals have a connection of their own: no lease runs out, and no handler is stopped.
func TestHandlersThatHoldThePoolBehindASlowNetworkStarveNoRenewal(t *testing.T) {
	t.Parallel()
	url, base := crew.Database(t)
	p := newProxy(t, url)
	const queue, conns, ttl = "greedy", 4, 2 * time.Second
	pool := crew.Pool(t, p.url, conns)
	var peak atomic.Int32
	ids := crew.Enqueue(t, base, conns, pacht.Queue(queue), pacht.TTL(ttl))
	plagues["delayed"](p)
	crew.Start(t, crew.On(t, pool), crew.Config(queue, conns, func(ctx context.Context, _ *pacht.Job[crew.Task]) error {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		if n := pool.Stat().AcquiredConns(); n > peak.Load() {
			peak.Store(n)
		}
		return clock.Sleep(ctx, 5*ttl/2)
	}))
	crew.Finished(t, base, 30*time.Second, queue)
	if got := crew.Outcomes(t, base, ids); got[pacht.OutcomeCompleted] != len(ids) || len(got) > 1 {
		t.Errorf("leases ended as %v", got)
	}
	if peak.Load() != conns {
		t.Errorf("handlers held %d connections of %d: nothing was proved", peak.Load(), conns)
	}
}
