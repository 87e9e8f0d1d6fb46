package effect_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/pachttest"
)

// S100: the provider has charged and the answer is lost, five times. The provider is asked by our
// reference before anybody calls again.
func TestALostAnswerIsFoundAtTheProviderAndNobodyCallsTwice(t *testing.T) {
	onBoth(t, func(w *world) {
		w.psp.set(func(p *provider) { p.after = hangUp })
		id := w.enqueue()
		w.run(w.pay)
		w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 1)
		w.psp.set(func(p *provider) { p.hidden = true })
		for range 4 {
			w.retry(id)
			w.run(w.pay)
			w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 1)
		}
		w.psp.set(func(p *provider) { p.hidden = false })
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
		if e := w.effect(id); string(e.Answer) != `{"id":"ch_1"}` {
			w.Errorf("answer %s", e.Answer)
		}
	})
}

// crashing is an EffectLog whose process dies just after an intent was committed.
type crashing struct{ pacht.EffectLog }

func (c crashing) BeginEffect(ctx context.Context, ref pacht.Ref, in pacht.EffectIntent) (pacht.EffectBegun, error) {
	if _, err := c.EffectLog.BeginEffect(ctx, ref, in); err != nil {
		panic(err)
	}
	runtime.Goexit()
	panic("not reached")
}

// claimed takes the due job for an owner who will die with it.
func (w *world) claimed() pacht.JobInfo {
	w.Helper()
	claims, err := w.store.Claim(w.Context(), pacht.ClaimRequest{Owner: "dies", Queue: pacht.DefaultQueue, Kinds: []string{"payment"}, Limit: 1})
	w.must(err)
	return claims.Jobs[0]
}

// dies runs one Do in a process that dies in it.
func (w *world) dies(job pacht.JobInfo, call func(context.Context, effect.Call) (receipt, error)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = w.charge.Do(context.Background(), careless{job}, call)
		w.Error("it lives")
	}()
	<-done
}

// S100: a crash between the intent and the call. The next attempt finds the intent, asks, and calls
// with the key of the first one.
func TestACrashBetweenIntentAndCallIsAskedAboutAndThenCalledWithTheSameKey(t *testing.T) {
	onBoth(t, func(w *world) {
		spec := effect.Spec[receipt]{KeyLife: keyLife, Consistency: consistency, Probe: w.psp.probe}
		id := w.enqueue()
		w.define(crashing{w.store}, spec)
		w.dies(w.claimed(), w.psp.charge)
		w.is(id, pacht.Processing, pacht.EffectCalled, 0, 0)
		key := w.effect(id).Key
		if got := pachttest.Expire(w.Context(), w, w.store, id); got != pacht.Pending { // an hour later
			w.Fatalf("expired to %s", got)
		}
		w.age(time.Hour)
		w.define(w.store, spec)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
		w.psp.oneKey(w, key)
		if e := w.effect(id); e.Calls != 2 || e.Token != 2 || w.psp.lookups.get() != 1 {
			w.Errorf("%d look-ups, %+v", w.psp.lookups.get(), e)
		}
	})
}

// S102: "not found" says nothing before the provider's own delay, by the database's clock; after
// it, the call is made again with the same key.
func TestNotFoundCountsOnlyAfterTheConsistencyDelay(t *testing.T) {
	onBoth(t, func(w *world) {
		w.psp.set(func(p *provider) { p.before = hangUp })
		id := w.enqueue()
		w.run(w.pay)
		w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 0)
		w.psp.set(func(p *provider) { p.before = nil })
		key := w.effect(id).Key
		for i := range 3 { // at 0, 30 and 60 seconds
			w.retry(id)
			w.run(w.pay)
			w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 0)
			if w.psp.lookups.get() != i+1 {
				w.Errorf("%d look-ups", w.psp.lookups.get())
			}
			w.age(consistency / 4)
		}
		w.age(consistency)
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 2, 1)
		w.psp.oneKey(w, key)
	})
}

// S102: found late, but found: nobody calls again.
func TestWhatTheProviderFindsLateIsNotCalledAgain(t *testing.T) {
	onBoth(t, func(w *world) {
		w.psp.set(func(p *provider) { p.after, p.hidden = hangUp, true })
		id := w.enqueue()
		w.run(w.pay)
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 1)
		w.psp.set(func(p *provider) { p.hidden = false })
		w.age(consistency)
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
	})
}

// S102, R10: not found, and the provider may have forgotten the key: a person's matter, for ever.
func TestNothingIsCalledAgainOnceItsKeyMayBeForgotten(t *testing.T) {
	onBoth(t, func(w *world) {
		w.psp.set(func(p *provider) { p.after, p.hidden = hangUp, true })
		id := w.enqueue()
		w.run(w.pay)
		for _, d := range []time.Duration{keyLife - time.Hour, 90 * 24 * time.Hour} {
			w.age(d)
			w.retry(id)
			w.run(w.pay)
			w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 1)
		}
		// No keys at all: not found is never enough.
		w.define(w.store, effect.Spec[receipt]{Probe: w.psp.probe})
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 1)
	})
}

// R10: silence, errors, panics and garbage of the prober resolve nothing.
func TestAProberThatMisbehavesResolvesNothing(t *testing.T) {
	probes := map[string]func(context.Context, pacht.Effect) (effect.Verdict[receipt], error){
		"nothing": func(context.Context, pacht.Effect) (v effect.Verdict[receipt], err error) { return v, nil },
		"an error": func(context.Context, pacht.Effect) (effect.Verdict[receipt], error) {
			return effect.Verdict[receipt]{State: effect.Succeeded}, errors.New("boom")
		},
		"a panic": func(context.Context, pacht.Effect) (effect.Verdict[receipt], error) { panic("boom") },
		"garbage": func(context.Context, pacht.Effect) (effect.Verdict[receipt], error) {
			return effect.Verdict[receipt]{State: "paid"}, nil
		},
		"no JSON": func(context.Context, pacht.Effect) (effect.Verdict[receipt], error) {
			return effect.Verdict[receipt]{State: effect.Succeeded, Result: receipt{Odd: &odd{}}}, nil
		},
		"no prober": nil,
	}
	onBoth(t, func(w *world) {
		w.psp.set(func(p *provider) { p.after = hangUp })
		id := w.enqueue()
		w.run(w.pay)
		w.age(time.Hour)
		for what, probe := range probes {
			w.define(w.store, effect.Spec[receipt]{KeyLife: keyLife, Probe: probe})
			w.retry(id)
			w.run(w.pay)
			w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 1)
			now, err := w.store.Now(w.Context())
			w.must(err)
			if f := w.effects.Probe(w.Context(), w.effect(id), now); f.State != effect.Inconclusive || what != "nothing" && f.Reason == "" {
				w.Errorf("%s: finding %+v", what, f)
			}
		}
		refused := effect.Verdict[receipt]{State: effect.Failed, Reason: "insufficient funds"}
		w.define(w.store, effect.Spec[receipt]{Probe: func(context.Context, pacht.Effect) (effect.Verdict[receipt], error) { return refused, nil }})
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Dead, pacht.EffectFailed, 1, 1)
		if e := w.effect(id); e.Error != "insufficient funds" {
			w.Errorf("reason %q", e.Error)
		}
	})
}
