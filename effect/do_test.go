package effect_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/sqlite"
)

func TestAResultIsReturnedToEveryAttemptAndTheCallMadeOnce(t *testing.T) { // R10
	onBoth(t, func(w *world) {
		id := w.enqueue()
		var results []receipt
		handle := func(ctx context.Context, job *pacht.Job[payment]) error {
			r, err := w.charge.DoWith(ctx, job, job.Args, w.psp.charge)
			results = append(results, r)
			if err == nil && job.Attempt < 3 {
				err = errors.New("after the charge")
			}
			return err
		}
		for range 3 {
			w.run(handle)
		}
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
		for _, r := range results {
			if r.ID != "ch_1" {
				w.Errorf("results %+v", results)
			}
		}
		e := w.effect(id)
		if string(e.Request) != `{"n":7}` || string(e.Answer) != `{"id":"ch_1"}` || e.Key == "" || e.Reference == "" {
			w.Errorf("stored %+v", e)
		}
		w.psp.oneKey(w, e.Key)
	})
}

// R10: what a call answers decides what its effect and its job are. An error that nobody classed,
// a panic and whatever cannot be stored mean that nobody knows.
func TestWhatACallAnswersIsStoredAndDecidesTheJob(t *testing.T) {
	boom := errors.New("boom")
	answers := func(r receipt, err error) func(context.Context, effect.Call) (receipt, error) {
		return func(context.Context, effect.Call) (receipt, error) { return r, err }
	}
	cases := []struct {
		name    string
		call    func(context.Context, effect.Call) (receipt, error)
		status  pacht.Status
		outcome pacht.Outcome
		state   pacht.EffectState
		says    string
	}{
		{"a result", answers(receipt{ID: "x"}, nil), pacht.Completed, pacht.OutcomeCompleted, pacht.EffectSucceeded, ""},
		{"a plain error", answers(receipt{}, boom), pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "boom"},
		{"unknown", answers(receipt{}, effect.Unknown(boom)), pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "boom"},
		{"a class of the job's, not of the effect's", answers(receipt{}, pacht.Permanent(boom)), pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "boom"},
		{"rejected", answers(receipt{}, effect.Rejected(boom)), pacht.Dead, pacht.OutcomeFailed, pacht.EffectFailed, "boom"},
		{"rejected, without a word", answers(receipt{}, effect.Rejected(nil)), pacht.Dead, pacht.OutcomeFailed, pacht.EffectFailed, "no reason"},
		{"rejected, because it was cut off", answers(receipt{}, effect.Rejected(context.DeadlineExceeded)), pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "deadline"},
		{"not sent", answers(receipt{}, effect.NotSent(boom)), pacht.Pending, pacht.OutcomeFailed, pacht.EffectReady, "boom"},
		{"rejected for now", answers(receipt{}, effect.RejectedForNow(time.Hour, boom)), pacht.Pending, pacht.OutcomeFailed, pacht.EffectReady, "boom"},
		{"a panic", func(context.Context, effect.Call) (receipt, error) { panic("kaboom") }, pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "kaboom"},
		{"the end of its goroutine", func(context.Context, effect.Call) (receipt, error) { runtime.Goexit(); return receipt{}, nil }, pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "Goexit"},
		{"a result that does not encode", answers(receipt{Odd: &odd{}}, nil), pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "odd"},
		{"a result that cannot be stored", answers(receipt{Note: "a\x00b"}, nil), pacht.Stuck, pacht.OutcomeUnknown, pacht.EffectUnknown, "cannot be stored"},
	}
	onBoth(t, func(w *world) {
		for _, c := range cases {
			id := w.enqueue()
			w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
				_, err := w.charge.Do(ctx, job, c.call)
				return err
			})
			ledger, err := w.store.Attempts(w.Context(), id)
			w.must(err)
			e := w.effect(id)
			if w.status(id) != c.status || len(ledger) != 1 || ledger[0].Outcome != c.outcome || e.State != c.state {
				w.Errorf("%s: job %s, ledger %+v, effect %+v", c.name, w.status(id), ledger, e)
			}
			if !strings.Contains(e.Error, c.says) || !strings.Contains(ledger[0].Error, c.says) {
				w.Errorf("%s: %q, %q", c.name, e.Error, ledger[0].Error)
			}
			_, err = w.store.Cancel(w.Context(), id, pacht.Act{By: "op", Reason: "test"}) // nothing is due for the next
			if c.status == pacht.Pending || c.status == pacht.Stuck {
				w.must(err)
			}
		}
		w.checked()
	})
}

func TestWhatTheProviderHasPutOffWaitsAndIsCalledWithTheSameKey(t *testing.T) { // R10
	onBoth(t, func(w *world) {
		id := w.enqueue()
		w.psp.set(func(p *provider) {
			p.before = func(rw http.ResponseWriter) bool { rw.WriteHeader(http.StatusTooManyRequests); return true }
		})
		w.run(w.pay)
		w.is(id, pacht.Pending, pacht.EffectReady, 1, 0)
		job, err := w.store.Job(w.Context(), id)
		w.must(err)
		now, err := w.store.Now(w.Context())
		w.must(err)
		if wait := job.RunAt.Sub(now); wait < 50*time.Minute || wait > time.Hour {
			w.Errorf("the job waits %s, told was an hour", wait)
		}
		// Run too early, by hand: nobody calls, and it waits for the rest of the hour.
		w.age(30 * time.Minute)
		w.must(pause(w.store.Cancel(w.Context(), id, pacht.Act{By: "op", Reason: "test"})))
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Pending, pacht.EffectReady, 1, 0)
		w.psp.set(func(p *provider) { p.before = nil })
		w.age(31 * time.Minute)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 2, 1)
		w.psp.oneKey(w, w.effect(id).Key)
		if w.psp.lookups.get() != 0 {
			w.Error("asked though nothing was open")
		}
	})
}

func pause(_ pacht.Status, err error) error { return err }

func TestARefusalForGoodIsReturnedToEveryAttempt(t *testing.T) { // R10
	onBoth(t, func(w *world) {
		id := w.enqueue()
		w.psp.set(func(p *provider) {
			p.before = func(rw http.ResponseWriter) bool { rw.WriteHeader(http.StatusPaymentRequired); return true }
		})
		w.run(w.pay)
		w.is(id, pacht.Dead, pacht.EffectFailed, 1, 0)
		w.psp.set(func(p *provider) { p.before = nil })
		w.retry(id)
		var failed *effect.FailedError
		w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
			err := w.pay(ctx, job)
			if !errors.As(err, &failed) || failed.Reason != "declined" || failed.Job != id || failed.Name != "charge" {
				w.Errorf("error %v", err)
			}
			return err
		})
		w.is(id, pacht.Dead, pacht.EffectFailed, 1, 0)
	})
}

// slice is a holder whose lease is nearly over.
type slice struct {
	*pacht.Held
	left time.Duration
}

func (s slice) Remaining() time.Duration { return s.left }

// R8, R10: enough of the lease is demanded by a round trip, and looked at again after the intent.
func TestNoCallStartsWithoutEnoughOfTheLease(t *testing.T) {
	onBoth(t, func(w *world) {
		w.define(w.store, effect.Spec[receipt]{MinLease: 2 * time.Hour})
		id := w.enqueue()
		w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
			err := w.pay(ctx, job)
			var invalid *pacht.InvalidError
			if !errors.As(err, &invalid) {
				w.Errorf("more than the TTL: %v", err)
			}
			return err
		})
		if list, err := w.store.Effects(w.Context(), id); len(list) != 0 || err != nil {
			w.Errorf("an intent was written: %+v, %v", list, err)
		}
		w.define(w.store, effect.Spec[receipt]{MinLease: 40 * time.Minute})
		id = w.enqueue()
		w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
			_, err := w.charge.Do(ctx, slice{job.Held, 19 * time.Minute}, w.psp.charge)
			if err == nil || pacht.Classed(err) || !strings.Contains(err.Error(), "19m0s of the lease left") {
				w.Errorf("in the last slice: %v", err)
			}
			return err
		})
		w.is(id, pacht.Pending, pacht.EffectReady, 0, 0)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
	})
}

func TestALostLeaseMakesNoCall(t *testing.T) { // R3, R10
	onBoth(t, func(w *world) {
		id := w.enqueue()
		claims, err := w.store.Claim(w.Context(), pacht.ClaimRequest{Owner: "a", Queue: pacht.DefaultQueue, Kinds: []string{"payment"}, Limit: 1})
		w.must(err)
		stale := claims.Jobs[0]
		w.must(pause(w.store.Release(w.Context(), stale.Ref(), pacht.Act{By: "op", Reason: "test"})))
		_, err = w.charge.Do(w.Context(), careless{stale}, w.psp.charge)
		if !errors.Is(err, pacht.ErrLeaseLost) || pacht.Classed(err) {
			w.Errorf("got %v", err)
		}
		if list, err := w.store.Effects(w.Context(), id); len(list) != 0 || err != nil || w.psp.calls.get() != 0 {
			w.Errorf("%d calls, effects %+v, %v", w.psp.calls.get(), list, err)
		}
	})
}

// careless is a holder that never looks at its lease: only the fence is left.
type careless struct{ job pacht.JobInfo }

func (c careless) Info() pacht.JobInfo                       { return c.job }
func (careless) Remaining() time.Duration                    { return time.Hour }
func (careless) Ensure(context.Context, time.Duration) error { return nil }
func (careless) EffectOpen(string, bool)                     {}

// R10: on SQLite the call would keep everybody from the file for as long as it takes.
func TestACallInsideAnOpenTransactionIsRefusedOnSQLite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	id := w.enqueue()
	w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
		tx, err := w.store.(*sqlite.Store).DB().BeginTx(ctx, nil)
		w.must(err)
		defer func() { _ = tx.Rollback() }()
		err = w.pay(ctx, job)
		if !errors.Is(err, pacht.ErrInTransaction) {
			w.Errorf("got %v", err)
		}
		return err
	})
	if list, err := w.store.Effects(w.Context(), id); len(list) != 0 || err != nil || w.psp.calls.get() != 0 {
		w.Errorf("%d calls, effects %+v, %v", w.psp.calls.get(), list, err)
	}
	w.run(w.pay)
	w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
}
