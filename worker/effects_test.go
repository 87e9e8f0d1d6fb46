package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/pachttest"
	"github.com/pacht-queue/pacht/worker"
)

// R10: while an effect is without an answer a handler cannot complete, and is not retried blindly.
// What it says itself about its error stands.
func TestAHandlerThatEndsWithAnOpenEffectIsUnknown(t *testing.T) {
	boom := errors.New("boom")
	cases := []struct {
		name    string
		handle  func(job *pacht.Job[task]) error
		outcome pacht.Outcome
		status  pacht.Status
		says    string
	}{
		{"nil", func(job *pacht.Job[task]) error { job.EffectOpen("charge", true); return nil }, pacht.OutcomeUnknown, pacht.Stuck, "an effect is without an answer: charge: handler returned nil; the effect's own error: pacht jobs show "},
		{"a plain error", func(job *pacht.Job[task]) error { job.EffectOpen("charge", true); return boom }, pacht.OutcomeUnknown, pacht.Stuck, "boom"},
		{"a panic", func(job *pacht.Job[task]) error { job.EffectOpen("charge", true); panic("kaboom") }, pacht.OutcomeUnknown, pacht.Stuck, "kaboom"},
		{"one of two open", func(job *pacht.Job[task]) error {
			job.EffectOpen("mail", true)
			job.EffectOpen("charge", true)
			job.EffectOpen("mail", false)
			return nil
		}, pacht.OutcomeUnknown, pacht.Stuck, "answer: charge:"},
		{"a classed error", func(job *pacht.Job[task]) error {
			job.EffectOpen("charge", true)
			return pacht.RetryAfter(time.Hour, boom)
		}, pacht.OutcomeFailed, pacht.Pending, "boom"},
		{"an answer", func(job *pacht.Job[task]) error {
			job.EffectOpen("charge", true)
			job.EffectOpen("charge", false)
			return nil
		}, pacht.OutcomeCompleted, pacht.Completed, ""},
		{"an answer, and a plain error", func(job *pacht.Job[task]) error { job.EffectOpen("charge", false); return boom }, pacht.OutcomeFailed, pacht.Pending, "boom"},
	}
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		for _, c := range cases {
			id := enqueue(t, s, 1)[0]
			handler := worker.HandleWith(worker.HandlerOptions{Retry: pacht.Fixed(time.Hour)}, func(_ context.Context, job *pacht.Job[task]) error { return c.handle(job) })
			got, ran := pachttest.RunOne(t.Context(), t, s, pacht.DefaultQueue, handler)
			if !ran || got.Outcome != c.outcome || got.Status != c.status || got.Err != nil {
				t.Errorf("%s: %+v", c.name, got)
			}
			if l := ledger(t, s, id); len(l) != 1 || !strings.Contains(l[0].Error, c.says) {
				t.Errorf("%s: ledger %+v", c.name, l)
			}
		}
		checked(t, s)
	})
}

// R4, R10: nothing is completed before the outcome is known, and who ignores the error commits
// nothing.
func TestCompleteTxWithAnOpenEffectIsRefusedAndBreaksTheTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		b, booked := newBusiness(t, db, s)
		id := enqueue(t, s, 1)[0]
		open := true
		handler := worker.Handle(func(ctx context.Context, job *pacht.Job[task]) error {
			job.EffectOpen("charge", open)
			tx, err := b.begin(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = tx.rollback(ctx) }()
			if err := tx.book(ctx); err != nil {
				return err
			}
			if err := job.CompleteTx(ctx, tx); open && !errors.Is(err, pacht.ErrEffectOpen) || !open && err != nil {
				t.Errorf("open %t: %v", open, err)
			}
			if err := tx.commit(ctx); (err == nil) == open {
				t.Errorf("open %t: commit: %v", open, err)
			}
			return nil
		})
		for _, want := range []pacht.Status{pacht.Stuck, pacht.Completed} {
			if got, _ := pachttest.RunOne(t.Context(), t, s, pacht.DefaultQueue, handler); got.Status != want {
				t.Errorf("open %t: %+v", open, got)
			}
			if open {
				if err := s.Retry(t.Context(), id, pacht.Act{By: "op", Reason: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			open = false
		}
		if n := booked(); n != 1 {
			t.Errorf("booked %d times", n)
		}
		checked(t, s)
	})
}

// R10: a handler that is stopped from outside is settled by its effects, whatever its kind says of
// crashes; without any, a hold kind is unknown.
func TestAStoppedHandlerIsSettledByItsEffects(t *testing.T) {
	open := func(job *pacht.Job[task]) { job.EffectOpen("charge", true) }
	answered := func(job *pacht.Job[task]) { open(job); job.EffectOpen("charge", false) }
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		for _, c := range []struct {
			name   string
			do     func(*pacht.Job[task])
			policy pacht.CrashPolicy
			want   pacht.Outcome
		}{
			{"open", open, pacht.CrashRetry, pacht.OutcomeUnknown},
			{"open, hold", open, pacht.CrashHold, pacht.OutcomeUnknown},
			{"answered", answered, pacht.CrashRetry, pacht.OutcomeFailed},
			{"answered, hold", answered, pacht.CrashHold, pacht.OutcomeFailed},
			{"none", func(*pacht.Job[task]) {}, pacht.CrashRetry, pacht.OutcomeFailed},
			{"none, hold", func(*pacht.Job[task]) {}, pacht.CrashHold, pacht.OutcomeUnknown},
		} {
			begun := make(chan struct{})
			cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
				c.do(job)
				close(begun)
				<-ctx.Done()
				return ctx.Err()
			})
			cfg.Grace = time.Millisecond
			id := enqueue(t, s, 1, pacht.OnCrash(c.policy))[0]
			w := start(t, s, cfg)
			<-begun
			if err := w.end(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			l := ledger(t, s, id)
			if len(l) != 1 || l[0].Outcome != c.want || !strings.Contains(l[0].Error, pacht.ErrStopping.Error()) {
				t.Errorf("%s: ledger %+v", c.name, l)
			}
			if j := job(t, s, id); c.want == pacht.OutcomeFailed && (j.Status != pacht.Pending || j.Attempt != 0) {
				t.Errorf("%s: %+v", c.name, j)
			}
			if _, err := s.Cancel(t.Context(), id, pacht.Act{By: "op", Reason: "test"}); err != nil { // nothing is due for the next
				t.Fatal(err)
			}
		}
		checked(t, s)
	})
}

// R10: what an earlier attempt has left open is not completed over by one that does not look, for
// instance because it finds its payment paid already.
func TestNothingIsCompletedOverAnOpenEffectOfAnEarlierAttempt(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		b, booked := newBusiness(t, db, s)
		act := pacht.Act{By: "op", Reason: "test"}
		id := enqueue(t, s, 1)[0]
		run := func(want pacht.Status, fn func(context.Context, *pacht.Job[task]) error) {
			t.Helper()
			if got, ran := pachttest.RunOne(t.Context(), t, s, pacht.DefaultQueue, worker.Handle(fn)); !ran || got.Status != want || got.Err != nil {
				t.Fatalf("ran %t, %+v, want %s", ran, got, want)
			}
			if want == pacht.Stuck {
				if err := s.Retry(t.Context(), id, act); err != nil {
					t.Fatal(err)
				}
			}
		}
		nothing := func(context.Context, *pacht.Job[task]) error { return nil }
		complete := func(ctx context.Context, job *pacht.Job[task]) error {
			return b.complete(ctx, job, func(tx businessTx) error { return tx.commit(ctx) })
		}
		run(pacht.Stuck, func(ctx context.Context, job *pacht.Job[task]) error {
			_, err := s.BeginEffect(ctx, job.Ref(), pacht.EffectIntent{Name: "charge", Key: "k", Reference: "r"})
			return pacht.UnknownOutcome(errors.Join(err, errors.New("no answer")))
		})
		run(pacht.Stuck, nothing)
		run(pacht.Stuck, complete)
		if _, err := s.AnswerEffect(t.Context(), pacht.EffectAnswer{Job: id, Name: "charge", State: pacht.EffectSucceeded}); err != nil {
			t.Fatal(err)
		}
		run(pacht.Completed, complete)
		if n := booked(); n != 1 {
			t.Errorf("booked %d times", n)
		}
		checked(t, s)
	})
}
