package effect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
)

func TestSpecsThatMakeNoSenseAreRefusedByField(t *testing.T) {
	all := effect.New(nil)
	define := func(name string, s effect.Spec[receipt]) error {
		_, err := effect.Define(all, name, s)
		return err
	}
	if err := define("charge", effect.Spec[receipt]{KeyLife: 24 * time.Hour, Consistency: 23*time.Hour - 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err   error
		field string
	}{
		{define("", effect.Spec[receipt]{}), "effect"},
		{define("a b", effect.Spec[receipt]{}), "effect"},
		{define("charge", effect.Spec[receipt]{}), "effect"},
		{define("x", effect.Spec[receipt]{KeyLife: -1}), "key life of effect x"},
		{define("x", effect.Spec[receipt]{KeyLife: pacht.MaxKeyLife + 1}), "key life of effect x"},
		{define("x", effect.Spec[receipt]{Consistency: -1}), "consistency of effect x"},
		{define("x", effect.Spec[receipt]{KeyLife: 24 * time.Hour, Consistency: 23 * time.Hour}), "consistency of effect x"},
		{define("x", effect.Spec[receipt]{KeyLife: time.Minute, Consistency: 54 * time.Second}), "consistency of effect x"},
		{define("x", effect.Spec[receipt]{MinLease: -1}), "least lease of effect x"},
		{define("x", effect.Spec[receipt]{MinLease: pacht.MaxTTL + 1}), "least lease of effect x"},
	} {
		var invalid *pacht.InvalidError
		if !errors.As(c.err, &invalid) || invalid.Field != c.field || invalid.Bound == "" {
			t.Errorf("want a refusal of %s, got %v", c.field, c.err)
		}
	}
	var invalid *pacht.InvalidError
	if _, err := effect.Define(all, "x", effect.Spec[chan int]{}); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "chan int") {
		t.Errorf("a result that never encodes: %v", err)
	}
	if _, err := effect.Define[receipt](nil, "x", effect.Spec[receipt]{}); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "of effect x") {
		t.Errorf("a set of effects that is not there: %v", err)
	}
	if err := define("refund", effect.Spec[receipt]{}); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(all.Names()); got != "[charge refund]" {
		t.Errorf("names %s", got)
	}
}

// R10: key and reference come from the job, never from the attempt, and not from its number alone.
func TestKeysAreOfTheJobAndOfItAlone(t *testing.T) {
	onBoth(t, func(w *world) {
		seen := map[string]pacht.ID{}
		for range 3 {
			id := w.enqueue()
			w.run(w.pay)
			e := w.effect(id)
			if seen[e.Key] != 0 || e.Reference != e.Key || !strings.HasPrefix(e.Key, fmt.Sprintf("payment-%d-charge-", id)) {
				w.Errorf("key %q, reference %q, seen %v", e.Key, e.Reference, seen)
			}
			seen[e.Key] = id
		}
		other := newWorld(w.T, "sqlite") // its jobs begin at 1 too
		for range 3 {
			id := other.enqueue()
			other.run(other.pay)
			if key := other.effect(id).Key; seen[key] != 0 {
				w.Errorf("two databases share the key %q", key)
			}
		}
		own := effect.Spec[receipt]{Reference: func(j pacht.JobInfo) string { return "pay-" + string(j.Args) }}
		w.define(w.store, own)
		id := w.enqueue()
		w.run(w.pay)
		if e := w.effect(id); e.Reference != `pay-{"n":7}` || e.Key == e.Reference {
			w.Errorf("%+v", e)
		}
	})
}

// R10: the reconciler asks as a handler does, without the types.
func TestTheUntypedProbeWeighsWhatItIsToldAndRecordsOnlyAnswers(t *testing.T) {
	onBoth(t, func(w *world) {
		w.psp.set(func(p *provider) { p.after, p.hidden = hangUp, true })
		id := w.enqueue()
		w.run(w.pay)
		now, err := w.store.Now(w.Context())
		w.must(err)
		e := w.effect(id)
		for _, c := range []struct {
			after time.Duration
			state effect.State
			again bool
		}{
			{0, effect.Inconclusive, false},
			{consistency - time.Minute, effect.Inconclusive, false},
			{consistency + time.Minute, effect.NotFound, true},
			{keyLife - 2*time.Hour, effect.NotFound, true},
			{keyLife - time.Hour + time.Minute, effect.NotFound, false},
			{180 * 24 * time.Hour, effect.NotFound, false},
		} {
			f := w.effects.Probe(w.Context(), e, now.Add(c.after))
			if f.State != c.state || f.Again != c.again || !f.Again && f.Reason == "" {
				w.Errorf("after %s: %+v", c.after, f)
			}
			if same, err := w.effects.Record(w.Context(), e, f); err != nil || same.Rev != e.Rev {
				w.Errorf("recorded %+v, %v", same, err)
			}
		}
		if f := w.effects.Probe(w.Context(), pacht.Effect{Name: "nobody's"}, now); f.State != effect.Inconclusive || f.Reason == "" {
			w.Errorf("an effect of another program: %+v", f)
		}
		w.psp.set(func(p *provider) { p.hidden = false })
		f := w.effects.Probe(w.Context(), e, now)
		if f.State != effect.Succeeded || string(f.Result) != `{"id":"ch_1"}` {
			w.Errorf("found %+v", f)
		}
		got, err := w.effects.Record(w.Context(), e, f)
		if err != nil || got.State != pacht.EffectSucceeded || string(got.Answer) != `{"id":"ch_1"}` {
			w.Errorf("recorded %+v, %v", got, err)
		}
		var otherwise *pacht.EffectError
		if _, err := w.effects.Record(context.Background(), e, effect.Finding{State: effect.Failed}); !errors.As(err, &otherwise) {
			w.Errorf("a final answer was overwritten: %v", err)
		}
		w.retry(id)
		w.run(w.pay)
		w.is(id, pacht.Completed, pacht.EffectSucceeded, 1, 1)
	})
}

// R10: what no attempt of the job can mend is not tried 25 times. Nothing was called, and nothing is
// written down.
func TestASpecThatDoesNotFitTheJobEndsItAtOnce(t *testing.T) {
	onBoth(t, func(w *world) {
		for _, c := range []struct {
			says string
			spec effect.Spec[receipt]
		}{
			{"MinLease of effect charge: 2h0m0s is not allowed, want at most the job's TTL, 1h0m0s", effect.Spec[receipt]{MinLease: 2 * time.Hour}},
			{`Reference of effect charge: "" is not allowed`, effect.Spec[receipt]{Reference: func(pacht.JobInfo) string { return "" }}},
			{"Reference of effect charge: \"xxx", effect.Spec[receipt]{Reference: func(pacht.JobInfo) string { return strings.Repeat("x", pacht.MaxKeyBytes+1) }}},
		} {
			w.define(w.store, c.spec)
			id := w.enqueue()
			w.run(w.pay)
			job, err := w.store.Job(w.Context(), id)
			w.must(err)
			ledger, err := w.store.Attempts(w.Context(), id)
			w.must(err)
			effects, err := w.store.Effects(w.Context(), id)
			w.must(err)
			if last := ledger[len(ledger)-1]; job.Status != pacht.Dead || len(ledger) != 1 || len(effects) != 0 || !strings.Contains(last.Error, c.says) {
				w.Errorf("%s: %s, %d attempts, effects %v", last.Error, job.Status, len(ledger), effects)
			}
		}
		// What an earlier attempt has called is not buried.
		w.define(w.store, effect.Spec[receipt]{KeyLife: keyLife, Consistency: consistency, Probe: w.psp.probe})
		w.psp.set(func(p *provider) { p.after = hangUp })
		id := w.enqueue()
		w.run(w.pay)
		w.retry(id)
		w.define(w.store, effect.Spec[receipt]{MinLease: 2 * time.Hour})
		w.run(w.pay)
		w.is(id, pacht.Stuck, pacht.EffectUnknown, 1, 1)
	})
}
