package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// answerTime bounds how long an answer is offered to the database, whatever became of the
// handler's context.
const answerTime = 5 * time.Second

// make makes the call, whose intent is durable, and stores what became of it.
func (d *deed) make(ctx context.Context, e pacht.Effect) (raw json.RawMessage, err error) {
	// The intent may have waited: no call starts in the last slice of a lease (R8).
	if left, need := d.h.Remaining(), d.def.lease(d.job)/2; left < need {
		return d.end(ctx, e, nil, NotSent(fmt.Errorf("not called: %s of the lease left, %s needed", left.Round(time.Millisecond), need)))
	}
	if ctx.Err() != nil {
		return d.end(ctx, e, nil, NotSent(fmt.Errorf("not called: %w", context.Cause(ctx))))
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		why := errors.New("the call ended its goroutine with runtime.Goexit")
		if r := recover(); r != nil {
			why = fmt.Errorf("the call panicked: %v\n%s", r, debug.Stack())
		}
		raw, err = d.end(ctx, e, nil, Unknown(why))
	}()
	failpoint.Here("effect.intended") // the intent is durable, and nothing was called
	raw, err = d.call(ctx, Call{Key: e.Key, Reference: e.Reference})
	returned = true
	failpoint.Here("effect.called") // the provider has done it, and nobody has written that down
	return d.end(ctx, e, raw, err)
}

// end stores what became of a call, and says what that means for the job.
func (d *deed) end(ctx context.Context, e pacht.Effect, raw json.RawMessage, err error) (json.RawMessage, error) {
	a := pacht.EffectAnswer{Job: e.Job, Name: e.Name, Rev: e.Rev, State: pacht.EffectSucceeded, Answer: raw}
	if err != nil {
		a.Answer, a.Error = nil, fmt.Sprint(err)
		a.State, a.Wait = classOf(err)
	}
	var later time.Duration // not 0: nothing was done now, and before that nobody knows
	if d.over && a.State == pacht.EffectReady {
		later = max(a.Wait, d.def.consistency, time.Second)
		a.State, a.Wait = pacht.EffectUnknown, 0
	}
	stored, storing := d.all.answer(ctx, a)
	failpoint.Here("effect.answered")
	var invalid *pacht.InvalidError
	if a.State == pacht.EffectSucceeded && errors.As(storing, &invalid) {
		// What the database cannot hold must not be lost in silence.
		return d.end(ctx, e, nil, Unknown(fmt.Errorf("it was done, and its result cannot be stored: %w", storing)))
	}
	var otherwise *pacht.EffectError
	switch {
	case storing == nil && later > 0:
		d.h.EffectOpen(e.Name, true)
		return nil, d.putOff(later, err) // by then the next attempt can ask, as it must
	case storing == nil:
		return d.ended(stored, a, err)
	case a.State == pacht.EffectReady:
		d.h.EffectOpen(e.Name, false) // nothing was done, whatever the record says
		return nil, d.putOff(a.Wait, errors.Join(err, storing))
	case errors.As(storing, &otherwise) && otherwise.Effect.State.Final() && a.State == pacht.EffectUnknown:
		return d.told(otherwise.Effect, time.Time{}) // somebody has found out meanwhile
	}
	d.h.EffectOpen(e.Name, true)
	return nil, pacht.UnknownOutcome(d.wrap(errors.Join(err, fmt.Errorf("store that it is %s: %w", a.State, storing))))
}

// ended says what an answer that is stored means for the job.
func (d *deed) ended(stored pacht.Effect, a pacht.EffectAnswer, err error) (json.RawMessage, error) {
	d.h.EffectOpen(stored.Name, stored.State.Open())
	switch a.State {
	case pacht.EffectSucceeded:
		return stored.Answer, nil
	case pacht.EffectFailed:
		return nil, pacht.Permanent(&FailedError{Job: stored.Job, Name: stored.Name, Reason: stored.Error, err: err})
	case pacht.EffectReady:
		return nil, d.putOff(a.Wait, err)
	}
	return nil, pacht.UnknownOutcome(d.wrap(err))
}

// putOff is an ordinary failure, which waits as the provider said or else as the policy says.
func (d *deed) putOff(wait time.Duration, err error) error {
	if wait > 0 {
		return pacht.RetryAfter(wait, d.wrap(err))
	}
	return d.wrap(err)
}

// answer offers an answer until the database has taken or refused it, or the time is up.
func (all *Effects) answer(ctx context.Context, a pacht.EffectAnswer) (pacht.Effect, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		e, err := all.log.AnswerEffect(ctx, a)
		if err == nil || refused(err) || clock.Sleep(ctx, clock.Jitter(wait)) != nil {
			return e, err
		}
	}
}

// refused says that asking again would change nothing.
func refused(err error) bool {
	var otherwise *pacht.EffectError
	var invalid *pacht.InvalidError
	if errors.As(err, &otherwise) || errors.As(err, &invalid) {
		return true
	}
	for _, final := range []error{pacht.ErrNotFound, pacht.ErrSchema, pacht.ErrClosed} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}
