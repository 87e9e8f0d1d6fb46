package effect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/pachttest"
)

// R10, S100: a stop in the middle of a call leaves the outcome unknown, never failed, also for a
// kind that is otherwise retried.
func TestAStopDuringACallLeavesItUnknown(t *testing.T) {
	onBoth(t, func(w *world) {
		begun := make(chan struct{})
		stop := w.start(func(ctx context.Context, job *pacht.Job[payment]) error {
			_, err := w.charge.Do(ctx, job, func(ctx context.Context, c effect.Call) (receipt, error) {
				close(begun)
				<-ctx.Done()
				return receipt{}, ctx.Err()
			})
			return err
		})
		id := w.enqueue()
		<-begun
		w.must(stop())
		w.is(id, pacht.Stuck, pacht.EffectUnknown, 0, 0)
	})
}

// R10: a handler that returns while its call is on its way, or the provider is asked, has completed
// nothing. The answer that comes later is stored all the same.
func TestAHandlerThatDoesNotWaitForItsCallIsUnknown(t *testing.T) {
	onBoth(t, func(w *world) {
		begun, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		id := w.enqueue()
		w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
			go func() {
				_, err := w.charge.Do(ctx, job, func(context.Context, effect.Call) (receipt, error) {
					close(begun)
					<-free
					return receipt{ID: "late"}, nil
				})
				done <- err
			}()
			<-begun
			return nil
		})
		w.is(id, pacht.Stuck, pacht.EffectCalled, 0, 0)
		w.retry(id)
		asked, answer := make(chan struct{}), make(chan struct{})
		w.define(w.store, effect.Spec[receipt]{Probe: func(context.Context, pacht.Effect) (v effect.Verdict[receipt], err error) {
			close(asked)
			<-answer
			return v, nil
		}})
		probed := make(chan error, 1)
		w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
			go func() { probed <- w.pay(ctx, job) }()
			<-asked
			return nil
		})
		w.is(id, pacht.Stuck, pacht.EffectCalled, 0, 0)
		close(answer)
		if err := <-probed; !pacht.Classed(err) {
			w.Errorf("the prober said nothing, and Do said %v", err)
		}
		close(free)
		w.must(<-done)
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 0, 0)
	})
}

// R10: stopped after its only effect was answered, a hold job has not to be parked.
func TestAStopAfterTheAnswerGivesTheAttemptBack(t *testing.T) {
	onBoth(t, func(w *world) {
		begun := make(chan struct{})
		stop := w.start(func(ctx context.Context, job *pacht.Job[payment]) error {
			if err := w.pay(ctx, job); err != nil {
				return err
			}
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		})
		id := w.enqueue(pacht.OnCrash(pacht.CrashHold))
		<-begun
		w.must(stop())
		w.is(id, pacht.Pending, pacht.EffectSucceeded, 1, 1)
		if j, err := w.store.Job(w.Context(), id); err != nil || j.Attempt != 0 {
			w.Errorf("attempt %d, %v", j.Attempt, err)
		}
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
	})
}

// R10: what the provider said is stored, also when the lease is gone, and serves the next holder.
func TestALateAnswerIsStoredAfterTheLeaseWasLost(t *testing.T) {
	onBoth(t, func(w *world) {
		id := w.enqueue()
		first := w.claimed()
		begun, free, done := make(chan struct{}), make(chan struct{}), make(chan error)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			_, err := w.charge.Do(ctx, careless{first}, func(ctx context.Context, c effect.Call) (receipt, error) {
				r, err := w.psp.charge(ctx, c)
				close(begun)
				<-free
				return r, err
			})
			done <- err
		}()
		<-begun
		w.psp.set(func(p *provider) { p.hidden = true }) // only the late answer can tell
		pachttest.Expire(w.Context(), w, w.store, id)
		w.age(time.Hour)
		cancel()
		close(free)
		w.must(<-done)
		w.is(id, pacht.Pending, pacht.EffectSucceeded, 1, 1)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
	})
}

// S101: the client gives up on a slow charge and tries again with the same purchase: one charge.
func TestASlowChargeThatIsTriedAgainIsOneCharge(t *testing.T) {
	onBoth(t, func(w *world) {
		w.define(w.store, effect.Spec[receipt]{KeyLife: keyLife, Probe: w.psp.probe}) // consistent at once
		slow, arrived := make(chan struct{}), make(chan struct{}, 8)
		answer := sync.OnceFunc(func() { close(slow) })
		defer answer()
		w.psp.set(func(p *provider) {
			p.before = func(http.ResponseWriter) bool { arrived <- struct{}{}; <-slow; return false }
		})
		impatient := func(ctx context.Context, job *pacht.Job[payment]) error {
			_, err := w.charge.Do(ctx, job, func(ctx context.Context, c effect.Call) (receipt, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go func() {
					select {
					case <-ctx.Done():
						return
					case <-arrived:
					}
					select {
					case <-slow:
					default:
						cancel() // it has waited long enough
					}
				}()
				return w.psp.charge(ctx, c)
			})
			return err
		}
		id := w.enqueue()
		w.run(impatient)
		w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 0)
		// Not known to the look-up either, so the same key goes out a second and a third time.
		for n := range 2 {
			w.retry(id)
			w.run(impatient)
			w.is(id, pacht.Stuck, pacht.EffectUnknown, n+2, 0)
		}
		answer()
		w.eventually("it is charged", func() bool { return w.psp.charged() > 0 })
		w.retry(id)
		w.run(impatient)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 3, 1)
		w.psp.oneKey(w, w.effect(id).Key)

		// A new purchase of the same amount is another charge: nobody merges them.
		second := w.enqueue()
		w.run(impatient)
		w.is(second, pacht.Completed, pacht.EffectSucceeded, 4, 2)
		if a, b := w.effect(id), w.effect(second); a.Key == b.Key || a.Reference == b.Reference {
			w.Errorf("%s and %s", a.Key, b.Key)
		}
	})
}

// shaky is an EffectLog that loses the first answers on their way to the database, and the
// database's answers to them.
type shaky struct {
	pacht.EffectLog
	before, after atomic.Int32
}

func (s *shaky) AnswerEffect(ctx context.Context, a pacht.EffectAnswer) (pacht.Effect, error) {
	if s.before.Add(-1) >= 0 {
		return pacht.Effect{}, errors.New("injected: connection refused")
	}
	e, err := s.EffectLog.AnswerEffect(ctx, a)
	if s.after.Add(-1) >= 0 {
		return pacht.Effect{}, fmt.Errorf("injected: %w", pacht.ErrUnknown)
	}
	return e, err
}

func TestAnAnswerIsOfferedUntilTheDatabaseHasIt(t *testing.T) { // R10
	onBoth(t, func(w *world) {
		log := &shaky{EffectLog: w.store}
		log.before.Store(2)
		log.after.Store(2)
		w.define(log, effect.Spec[receipt]{})
		id := w.enqueue()
		w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
			ctx, cancel := context.WithCancel(ctx)
			_, err := w.charge.Do(ctx, job, func(ctx context.Context, c effect.Call) (receipt, error) {
				defer cancel() // the answer outlives it
				return w.psp.charge(ctx, c)
			})
			return err
		})
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
		if e := w.effect(id); e.Rev != 2 {
			w.Errorf("stored more than once: %+v", e)
		}
	})
}
