package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht"
)

// Holder is who holds the lease: *pacht.Held, and so *pacht.Job[T].
type Holder interface {
	Info() pacht.JobInfo
	Remaining() time.Duration
	Ensure(ctx context.Context, d time.Duration) error
	EffectOpen(name string, open bool)
}

// Call is what a call bears, the same in every attempt.
type Call struct {
	Key       string // the idempotency key
	Reference string // by which the provider is asked later
}

// Do makes the call, unless an earlier attempt has: then it returns that one's result, or finds
// out from the provider. Before the call it renews the lease and writes down the intent; after it,
// the answer, also when the lease is gone or ctx has ended. No transaction is held meanwhile, and
// one that this goroutine has open on SQLite is refused.
//
// What call returns must be a result, or an error of a class of this package; any other error, a
// panic and a result that does not encode as JSON mean that nobody knows. The result is returned
// as it was stored, by way of JSON. An error of Do is classed for the handler: refused for good is
// permanent, put off waits, unknown parks the job, and whatever happened before the call is an
// ordinary failure.
func (f *Effect[R]) Do(ctx context.Context, h Holder, call func(context.Context, Call) (R, error)) (R, error) {
	return f.DoWith(ctx, h, nil, call)
}

// DoWith is Do, and keeps with the intent what is asked for, as JSON, for whoever looks into it
// later. The first intent's stays.
func (f *Effect[R]) DoWith(ctx context.Context, h Holder, request any, call func(context.Context, Call) (R, error)) (R, error) {
	var result R
	d := &deed{all: f.all, def: f.def, h: h, job: h.Info()}
	if request != nil {
		raw, err := json.Marshal(request)
		if err != nil {
			return result, d.wrap(fmt.Errorf("its request does not encode as JSON: %w", err))
		}
		d.request = raw
	}
	d.call = func(ctx context.Context, c Call) (json.RawMessage, error) {
		made, err := call(ctx, c)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(made)
		if err != nil {
			return nil, Unknown(fmt.Errorf("it was done, and the result does not encode as JSON: %w", err))
		}
		return raw, nil
	}
	raw, err := d.do(ctx)
	if err != nil {
		return result, err
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &result); err != nil {
			return result, d.wrap(fmt.Errorf("it succeeded, and its stored result does not decode: %w", err))
		}
	}
	return result, nil
}

// deed is one Do on its way.
type deed struct {
	all     *Effects
	def     *definition
	h       Holder
	job     pacht.JobInfo
	request json.RawMessage
	call    func(context.Context, Call) (json.RawMessage, error)
	// over says that this call is made over an earlier one whose outcome nobody knows. That the
	// second did nothing says nothing of the first.
	over bool
}

func (d *deed) wrap(err error) error {
	return fmt.Errorf("effect %s of job %d: %w", d.def.name, d.job.ID, err)
}

func (d *deed) do(ctx context.Context) (json.RawMessage, error) {
	var again int64
	// Each round ends the matter, or finds that somebody else has changed the effect meanwhile.
	for range 3 {
		begun, err := d.begin(ctx, again)
		if err != nil {
			return nil, d.wrap(err)
		}
		e := begun.Effect
		d.h.EffectOpen(d.def.name, e.State.Open())
		switch {
		case begun.Begun:
			d.over = again != 0
			return d.make(ctx, e)
		case !e.State.Open():
			return d.told(e, begun.Now)
		}
		found := d.def.ask(ctx, e, begun.Now)
		if found.Again {
			again = e.Rev
			continue
		}
		return d.found(ctx, e, found)
	}
	return nil, pacht.UnknownOutcome(d.wrap(errors.New("somebody else goes on changing it")))
}

// begin demands enough of the lease by a round trip, and then writes the intent.
func (d *deed) begin(ctx context.Context, again int64) (pacht.EffectBegun, error) {
	if d.def.minLease > d.job.TTL {
		return pacht.EffectBegun{}, d.hopeless(ctx, &pacht.InvalidError{
			Field: "MinLease of effect " + d.def.name, Value: d.def.minLease.String(), Bound: fmt.Sprintf("at most the job's TTL, %s", d.job.TTL)})
	}
	key, reference := d.def.names(d.job)
	if reference == "" || len(reference) > pacht.MaxKeyBytes {
		return pacht.EffectBegun{}, d.hopeless(ctx, &pacht.InvalidError{
			Field: "Reference of effect " + d.def.name, Value: strconv.Quote(reference[:min(len(reference), 40)]), Bound: fmt.Sprintf("1 to %d bytes", pacht.MaxKeyBytes)})
	}
	if err := d.h.Ensure(ctx, d.def.lease(d.job)); err != nil {
		return pacht.EffectBegun{}, err
	}
	return d.all.log.BeginEffect(ctx, d.job.Ref(), pacht.EffectIntent{
		Name: d.def.name, Key: key, Reference: reference, Request: d.request, Again: again,
	})
}

// hopeless classes what no attempt of this job can mend: it is dead, for nothing was called. If an
// earlier attempt has called, by another spec, it is parked: somebody must look at what that did.
func (d *deed) hopeless(ctx context.Context, why error) error {
	known, err := d.all.log.Effects(ctx, d.job.ID)
	if err != nil {
		return errors.Join(why, err)
	}
	for _, e := range known {
		if e.Name == d.def.name {
			d.h.EffectOpen(e.Name, e.State.Open())
			return pacht.UnknownOutcome(why)
		}
	}
	return pacht.Permanent(why)
}

// told returns what is known already.
func (d *deed) told(e pacht.Effect, now time.Time) (json.RawMessage, error) {
	d.h.EffectOpen(e.Name, false)
	switch e.State {
	case pacht.EffectSucceeded:
		return e.Answer, nil
	case pacht.EffectFailed:
		return nil, pacht.Permanent(&FailedError{Job: e.Job, Name: e.Name, Reason: e.Error})
	}
	wait := max(e.NotBefore.Sub(now), time.Millisecond)
	return nil, pacht.RetryAfter(wait, d.wrap(fmt.Errorf("it may not be called before %s: %s", e.NotBefore.Format(time.RFC3339), e.Error)))
}

// found acts on what the provider says of a call that has no answer.
func (d *deed) found(ctx context.Context, e pacht.Effect, f Finding) (json.RawMessage, error) {
	switch f.State {
	case Succeeded:
		return d.end(ctx, e, f.Result, nil)
	case Failed:
		return d.end(ctx, e, nil, Rejected(errors.New(f.Reason)))
	}
	why := errors.New("the provider was asked, and its outcome stays unknown: " + f.Reason)
	if e.State == pacht.EffectUnknown {
		return nil, pacht.UnknownOutcome(d.wrap(why)) // the record says so already
	}
	return d.end(ctx, e, nil, Unknown(why))
}
