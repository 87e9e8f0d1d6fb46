package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// S002: rescue looks only at lease_until, which renewals keep fresh. S009 runs it with one
// processor and a handler that never lets go.
func TestHandlerLongerThanItsTTLRunsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		var runs atomic.Int32
		cfg := quick(4, func(ctx context.Context, job *pacht.Job[task]) error {
			runs.Add(1)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(5 * time.Second):
				return nil
			}
		})
		start(t, s, cfg)
		start(t, db.open(t), cfg) // a second worker that would take what expires
		id := enqueue(t, s, 1, pacht.TTL(2*time.Second))[0]
		becomes(t, s, id, pacht.Completed)
		if n := runs.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
		if got := ledger(t, s, id); len(got) != 1 || got[0].Attempt != 1 || got[0].Late {
			t.Errorf("ledger: %+v", got)
		}
		checked(t, s)
	})
}

// R8, S001, S012: a worker that cannot renew cancels its handler before lease_until, with the
// cause, reports unhealthy, claims nothing meanwhile, and goes on by itself afterwards.
func TestHolderStopsItselfBeforeItsLeaseEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &faulty{store: db.open(t)}
		stopped := make(chan error, 10)
		var left atomic.Int64
		var fast atomic.Bool
		begun := make(chan struct{}, 1)
		cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			if fast.Swap(true) {
				return nil
			}
			begun <- struct{}{}
			<-ctx.Done()
			left.Store(int64(job.Remaining()))
			stopped <- context.Cause(ctx)
			return ctx.Err()
		})
		cfg.NoWatch = true
		w := start(t, s, cfg)
		id := enqueue(t, s, 1, pacht.TTL(time.Second))[0]
		<-begun
		s.failRenew.Store(true)
		select {
		case cause := <-stopped:
			if !errors.Is(cause, pacht.ErrLeaseLost) {
				t.Errorf("cause: %v", cause)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the handler was not cancelled")
		}
		if d := time.Duration(left.Load()); d <= 0 {
			t.Errorf("cancelled %s after the end of the lease", -d)
		}
		// R10: it was stopped, so its attempt is given back, and it may run again.
		eventually(t, 5*time.Second, "the attempt is settled as failed", func() bool { return len(ledger(t, s, id)) == 1 })
		if a := ledger(t, s, id)[0]; a.Outcome != pacht.OutcomeFailed || a.NextStatus != pacht.Pending {
			t.Errorf("ledger: %+v", a)
		}
		if w.Status().Unreachable == nil || w.seen.count(worker.EventLost) != 1 {
			t.Errorf("status %+v, lost events %d", w.Status(), w.seen.count(worker.EventLost))
		}
		if j := job(t, s, id); j.Status != pacht.Pending || j.Attempt != 0 {
			t.Errorf("a worker that cannot renew has claimed again: %+v", j)
		}
		s.failRenew.Store(false)
		becomes(t, s, id, pacht.Completed)
		eventually(t, 5*time.Second, "healthy again", func() bool { return w.Status().Unreachable == nil })
		checked(t, s)
	})
}

// S011, S015: whoever comes back to a lease that another has taken changes nothing, tells of
// no success, and its outcome is kept as a report.
func TestLateOutcomeIsRefusedAndKept(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &faulty{store: db.open(t)}
		release := make(chan struct{})
		var runs atomic.Int32
		cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			if runs.Add(1) == 1 {
				<-release // ignores its context, as a frozen process would
			}
			return nil
		})
		cfg.NoWatch = true
		w := start(t, s, cfg)
		id := enqueue(t, s, 1, pacht.TTL(time.Second))[0]
		becomes(t, s, id, pacht.Processing)
		s.failRenew.Store(true)
		eventually(t, 10*time.Second, "the lease is lost", func() bool { return w.seen.count(worker.EventLost) == 1 })
		other := db.open(t)
		var taken pacht.JobInfo
		eventually(t, 10*time.Second, "another takes the expired lease", func() bool {
			j, ok, err := other.ClaimID(t.Context(), "other", id)
			if err != nil {
				t.Fatal(err)
			}
			taken = j
			return ok
		})
		close(release)
		eventually(t, 10*time.Second, "the outcome is refused", func() bool { return w.seen.count(worker.EventRefused) == 1 })
		if n := w.seen.count(worker.EventSettled); n != 0 {
			t.Errorf("%d success events", n)
		}
		now := job(t, s, id)
		if now.Token != taken.Token || now.LeaseOwner != "other" || !now.LeaseUntil.Equal(taken.LeaseUntil) {
			t.Errorf("the new holder's lease was changed: %+v, was %+v", now, taken)
		}
		reports, err := s.Reports(t.Context(), id)
		if err != nil || len(reports) != 1 || reports[0].Outcome != pacht.OutcomeCompleted || reports[0].Owner != w.Owner() {
			t.Errorf("reports: %+v, %v", reports, err)
		}
		if got := outcomes(t, s, id); !slices.Equal(got, []pacht.Outcome{pacht.OutcomeExpired}) {
			t.Errorf("ledger: %v", got)
		}
		checked(t, s)
	})
}

// R4: after a claim whose answer was lost the worker asks what it holds, and runs it.
func TestClaimWithoutAnswerIsAdopted(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &faulty{store: db.open(t)}
		s.loseClaims.Store(1)
		var runs atomic.Int32
		ids := enqueue(t, s, 3)
		start(t, s, quick(5, func(context.Context, *pacht.Job[task]) error { runs.Add(1); return nil }))
		for _, id := range ids {
			becomes(t, s, id, pacht.Completed)
			if got := ledger(t, s, id); len(got) != 1 || got[0].Attempt != 1 {
				t.Errorf("ledger of job %d: %+v", id, got)
			}
		}
		if runs.Load() != 3 {
			t.Errorf("%d runs", runs.Load())
		}
		checked(t, s)
	})
}

// R4, S022: a settle whose answer was lost is offered again and answered from the ledger; one
// that cannot be stored is offered, and its lease renewed, until the database is back.
func TestOutcomeIsOfferedUntilItIsAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &faulty{store: db.open(t)}
		s.loseSettles.Store(1)
		s.failSettle.Store(true)
		var runs atomic.Int32
		w := start(t, s, quick(1, func(context.Context, *pacht.Job[task]) error { runs.Add(1); return nil }))
		id := enqueue(t, s, 1, pacht.TTL(2*time.Second))[0]
		eventually(t, 10*time.Second, "settling fails", func() bool { return w.Status().Errors > 0 })
		first := job(t, s, id).LeaseUntil
		eventually(t, 10*time.Second, "the lease outlives its first end, renewed", func() bool {
			now, err := s.Now(t.Context())
			return err == nil && now.After(first.Add(200*time.Millisecond))
		})
		if j := job(t, s, id); j.Status != pacht.Processing || !j.LeaseUntil.After(first) {
			t.Fatalf("the lease of a finished handler was not kept: %+v", j)
		}
		s.failSettle.Store(false)
		becomes(t, s, id, pacht.Completed)
		eventually(t, 10*time.Second, "told once", func() bool { return w.seen.count(worker.EventSettled) == 1 })
		if runs.Load() != 1 || len(ledger(t, s, id)) != 1 {
			t.Errorf("%d runs, ledger %+v", runs.Load(), ledger(t, s, id))
		}
		checked(t, s)
	})
}

// S006: a worker never leases more than it has free slots for.
func TestNeverLeasesMoreThanItsSlots(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		ids := enqueue(t, s, 12, pacht.TTL(time.Second))
		var running, most atomic.Int32
		start(t, s, quick(2, func(ctx context.Context, job *pacht.Job[task]) error {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			held, err := s.Jobs(ctx, pacht.Filter{Status: pacht.Processing})
			if err != nil {
				return err
			}
			if len(held) > 2 {
				t.Errorf("%d leases held with 2 slots", len(held))
			}
			return nil
		}))
		for _, id := range ids {
			becomes(t, s, id, pacht.Completed)
			if n := len(ledger(t, s, id)); n != 1 {
				t.Errorf("job %d ran %d times", id, n)
			}
		}
		if most.Load() > 2 {
			t.Errorf("%d handlers at once", most.Load())
		}
	})
}

// R8: Ensure is a round trip, renews, refuses more than the TTL naming both, and knows of a
// lost lease before the renewer does.
func TestEnsureRenewsOrRefuses(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		answers := make(chan error, 3)
		lost := make(chan struct{})
		cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			answers <- job.Ensure(ctx, 3*time.Minute)
			answers <- job.Ensure(ctx, 30*time.Second)
			<-lost
			answers <- job.Ensure(ctx, time.Second)
			return nil
		})
		start(t, s, cfg)
		id := enqueue(t, s, 1)[0]
		var invalid *pacht.InvalidError
		if err := <-answers; !errors.As(err, &invalid) || invalid.Value != "3m0s" || invalid.Bound != "at most the job's TTL, 1m0s" {
			t.Errorf("more than the TTL: %v", err)
		}
		if err := <-answers; err != nil {
			t.Errorf("within the TTL: %v", err)
		}
		act := pacht.Act{By: "test", Reason: "take it away"}
		if _, err := s.Release(t.Context(), job(t, s, id).Ref(), act); err != nil {
			t.Fatal(err)
		}
		close(lost)
		if err := <-answers; !errors.Is(err, pacht.ErrLeaseLost) {
			t.Errorf("after the lease was taken away: %v", err)
		}
	})
}

// S083: kinds without a handler are left to others, and burn no attempt.
func TestUnknownKindsAreLeftAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		answers, err := s.Enqueue(t.Context(), []pacht.NewJob{{Kind: "other", Args: []byte(`{}`)}})
		if err != nil || answers[0].Err != nil {
			t.Fatal(err, answers)
		}
		start(t, s, quick(5, func(context.Context, *pacht.Job[task]) error { return nil }))
		for _, id := range enqueue(t, s, 20) {
			becomes(t, s, id, pacht.Completed)
		}
		if j := job(t, s, answers[0].ID); j.Status != pacht.Pending || j.Attempt != 0 || j.Token != 0 {
			t.Errorf("touched: %+v", j)
		}
		workers, err := s.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now, _ := s.Now(t.Context())
		if why := pacht.WhyNotRunning(job(t, s, answers[0].ID), workers, now); why != `no running worker handles kind "other" (1 handle other kinds of queue "default")` {
			t.Errorf("why it does not run: %s", why)
		}
	})
}
