// Package effect makes calls to the outside that cannot be rolled back: a charge, a refund, a
// mail. Between "the provider has done it" and "we have written it down" lies the gap in which
// money is lost or taken twice; this closes it (R10).
//
//	intent, durable and fenced ─ call, with a key that never changes ─ answer, stored even if the
//	                                                                   lease is gone by then
//	next attempt: an answer is returned without a call; without one the provider is asked by our
//	own reference, and until that is conclusive nobody calls again
//
// An effect is defined once, with what its provider promises, and done inside a handler. What Do
// returns may be returned by the handler as it is: its class says what becomes of the job.
package effect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
)

// Effects is the effects of one program, by name.
type Effects struct {
	log pacht.EffectLog

	mu      sync.Mutex
	defined map[string]*definition
}

// New makes an empty set, whose effects are kept in the given store.
func New(log pacht.EffectLog) *Effects {
	return &Effects{log: log, defined: make(map[string]*definition)}
}

// Spec is what is known of an effect whose result is an R: above all, what its provider promises.
type Spec[R any] struct {
	// KeyLife is for how long the provider remembers an idempotency key. A call whose outcome is
	// unknown is made again within it only, less a tenth (an hour at most), counted from the
	// first call. 0: it knows no keys, and no such call is ever made again. At most MaxKeyLife.
	KeyLife time.Duration
	// Consistency is for how long after a call the provider may still say that it does not know
	// it. Until then "not found" says nothing.
	Consistency time.Duration
	// MinLease is how much of its lease a holder must have before it calls; more than a call
	// takes. 0: half of the job's TTL.
	MinLease time.Duration
	// Probe asks the provider, by Reference, what became of a call. Silence, an error, a panic
	// and garbage resolve nothing. It is used by handlers and by the reconciler. Nil: nobody
	// can be asked, and a call without an answer stays unknown until a person decides.
	Probe func(ctx context.Context, e pacht.Effect) (Verdict[R], error)
	// Reference names the call to the provider: ours, unique, the same for every attempt.
	// Nil: it is made of kind, job, effect and a hash. 1 to MaxKeyBytes bytes.
	Reference func(pacht.JobInfo) string
}

// Effect is a defined effect whose result is an R.
type Effect[R any] struct {
	all *Effects
	def *definition
}

// definition is a Spec without its type.
type definition struct {
	name        string
	keyLife     time.Duration
	consistency time.Duration
	minLease    time.Duration
	probe       func(ctx context.Context, e pacht.Effect) (Finding, error) // nil: nobody can be asked
	reference   func(pacht.JobInfo) string
}

// Define defines an effect. Its name stands in the database: never change it once it was
// called. A spec that makes no sense and a name that is taken are refused with an
// *pacht.InvalidError.
func Define[R any](all *Effects, name string, s Spec[R]) (*Effect[R], error) {
	def := &definition{
		name: name, keyLife: s.KeyLife, consistency: s.Consistency, minLease: s.MinLease, reference: s.Reference,
	}
	if all == nil {
		return nil, &pacht.InvalidError{Field: "effects", Value: "nil", Bound: "what New has made, of effect " + name}
	}
	if s.Probe != nil {
		def.probe = func(ctx context.Context, e pacht.Effect) (Finding, error) {
			v, err := s.Probe(ctx, e)
			return v.finding(), err
		}
	}
	if err := def.validate(); err != nil {
		return nil, err
	}
	var result R
	var cannot *json.UnsupportedTypeError
	if _, err := json.Marshal(result); errors.As(err, &cannot) {
		return nil, &pacht.InvalidError{Field: "result of effect " + name, Value: fmt.Sprintf("%T", result), Bound: "a type that encodes as JSON"}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.defined[name] != nil {
		return nil, &pacht.InvalidError{Field: "effect", Value: name, Bound: "a name that is not defined yet"}
	}
	all.defined[name] = def
	return &Effect[R]{all: all, def: def}, nil
}

// Names lists the defined effects, sorted.
func (all *Effects) Names() []string {
	all.mu.Lock()
	defer all.mu.Unlock()
	names := make([]string, 0, len(all.defined))
	for name := range all.defined {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (all *Effects) definition(name string) *definition {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.defined[name]
}

func (d *definition) validate() error {
	if err := pacht.ValidName("effect", d.name); err != nil {
		return err
	}
	for _, each := range []struct {
		field string
		value time.Duration
		most  time.Duration
	}{
		{"key life", d.keyLife, pacht.MaxKeyLife},
		{"consistency", d.consistency, pacht.MaxDelay},
		{"least lease", d.minLease, pacht.MaxTTL},
	} {
		if each.value < 0 || each.value > each.most {
			return &pacht.InvalidError{
				Field: each.field + " of effect " + d.name, Value: each.value.String(), Bound: fmt.Sprintf("0 to %s", each.most)}
		}
	}
	if d.keyLife > 0 && d.consistency >= d.usable() {
		return &pacht.InvalidError{
			Field: "consistency of effect " + d.name, Value: d.consistency.String(),
			Bound: fmt.Sprintf("less than %s, the key life less its margin: later no call is made again", d.usable())}
	}
	return nil
}

// usable is for how long after the first call a key may be relied on.
func (d *definition) usable() time.Duration { return d.keyLife - min(d.keyLife/10, time.Hour) }

// lease is how much of the lease of this job a call needs.
func (d *definition) lease(job pacht.JobInfo) time.Duration {
	if d.minLease > 0 {
		return d.minLease
	}
	return job.TTL / 2
}

// names makes key and reference of a first call. They come from the job, never from the attempt;
// when the job was made and what it is to do are in the hash, so that two databases whose numbers
// begin at 1 do not meet at the provider.
func (d *definition) names(job pacht.JobInfo) (key, reference string) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %q %d ", job.Kind, job.ID, d.name, job.CreatedAt.UnixMicro())
	h.Write(job.Args)
	key = fmt.Sprintf("%s-%d-%s-%s", job.Kind, job.ID, d.name, hex.EncodeToString(h.Sum(nil)[:8]))
	if d.reference == nil {
		return key, key
	}
	return key, d.reference(job)
}
