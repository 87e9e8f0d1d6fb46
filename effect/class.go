package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// classed is an error of a call that says what it means for the effect.
type classed struct {
	state pacht.EffectState
	wait  time.Duration
	err   error
}

func (c *classed) Error() string { return fmt.Sprint(c.err) }
func (c *classed) Unwrap() error { return c.err }

// Rejected says that the provider has refused for good: the effect failed, and that is final.
// Another try needs another job. Like the other classes it is never nil, whatever it wraps.
func Rejected(err error) error { return class(pacht.EffectFailed, 0, err) }

// NotSent says that certainly nothing reached the provider. The effect may be called again.
func NotSent(err error) error { return class(pacht.EffectReady, 0, err) }

// RejectedForNow says that the provider has certainly not done it and may do it later: the
// effect may be called again, not before so long from now; 0 to MaxDelay.
func RejectedForNow(wait time.Duration, err error) error {
	return class(pacht.EffectReady, min(max(wait, 0), pacht.MaxDelay), err)
}

// Unknown says that nobody knows whether it was done. So is every error without a class of this
// package.
func Unknown(err error) error { return class(pacht.EffectUnknown, 0, err) }

func class(state pacht.EffectState, wait time.Duration, err error) error {
	if err == nil {
		err = errors.New("no reason was given")
	}
	return &classed{state: state, wait: wait, err: err}
}

// classOf is what an error of a call means. A call that was cut off is never taken for refused.
func classOf(err error) (pacht.EffectState, time.Duration) {
	var c *classed
	if !errors.As(err, &c) {
		return pacht.EffectUnknown, 0
	}
	if c.state == pacht.EffectFailed && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return pacht.EffectUnknown, 0
	}
	return c.state, c.wait
}

// FailedError says that the provider has refused for good, in this attempt or an earlier one.
type FailedError struct {
	Job    pacht.ID
	Name   string
	Reason string // as it was stored
	err    error  // of this very call, if it was this one
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("effect %s of job %d failed: %s", e.Name, e.Job, e.Reason)
}

// Unwrap is the error of the call, if it was this attempt's.
func (e *FailedError) Unwrap() error { return e.err }
