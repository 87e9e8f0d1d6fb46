package pacht

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// RetryPolicy says how long a failed job waits before its next attempt. It is pure: chance
// comes in as r, evenly spread over [0, 1). Results below 0 or above MaxDelay are cut to
// these bounds, so a policy cannot make a hot loop of negative time nor overflow a database.
type RetryPolicy interface {
	// Delay is the wait after the given attempt failed, counted from 1.
	Delay(attempt int, r float64) time.Duration
}

// Exponential waits an even chance between 0 and min(Cap, Base * 2^(attempt-1)): full
// jitter, which spreads a herd of failures best. Zero fields mean 1 s and 1 h.
type Exponential struct{ Base, Cap time.Duration }

// Delay implements RetryPolicy.
func (e Exponential) Delay(attempt int, r float64) time.Duration {
	return time.Duration(r * float64(e.Ceiling(attempt)))
}

// Ceiling is the longest wait after the given attempt. It never shrinks with the attempt.
func (e Exponential) Ceiling(attempt int) time.Duration {
	base, most := e.Base, e.Cap
	if base <= 0 {
		base = time.Second
	}
	if most <= 0 {
		most = time.Hour
	}
	// Doubling in floating point cannot wrap around; 2^63 ns is far above any cap.
	grown := float64(base) * math.Exp2(float64(min(max(attempt, 1)-1, 1000)))
	if grown >= float64(most) {
		return most
	}
	return time.Duration(grown)
}

// Fixed waits the same after each failure.
type Fixed time.Duration

// Delay implements RetryPolicy.
func (f Fixed) Delay(int, float64) time.Duration { return time.Duration(f) }

// Linear waits Step after the first failure, twice Step after the second, up to Cap
// (0 = MaxDelay).
type Linear struct{ Step, Cap time.Duration }

// Delay implements RetryPolicy.
func (l Linear) Delay(attempt int, _ float64) time.Duration {
	most := l.Cap
	if most <= 0 {
		most = MaxDelay
	}
	if grown := float64(l.Step) * float64(max(attempt, 1)); grown < float64(most) {
		return time.Duration(grown)
	}
	return most
}

// RetryFunc is a policy of one's own.
type RetryFunc func(attempt int, r float64) time.Duration

// Delay implements RetryPolicy.
func (f RetryFunc) Delay(attempt int, r float64) time.Duration { return f(attempt, r) }

// handlerError is an error that says what it means for the job.
type handlerError struct {
	outcome   Outcome
	permanent bool
	delay     time.Duration // of RetryAfter and Snooze; -1 = the policy's
	err       error
}

func (e *handlerError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("%s for %s", e.outcome, e.delay)
	}
	return e.err.Error()
}

func (e *handlerError) Unwrap() error { return e.err }

// Permanent marks a failure that no retry can mend: the job is Dead at once. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &handlerError{outcome: OutcomeFailed, permanent: true, delay: -1, err: err}
}

// RetryAfter is a failure that says when to try again, instead of the policy. Nil stays nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &handlerError{outcome: OutcomeFailed, delay: max(d, 0), err: err}
}

// Snooze puts the job off without counting the attempt. It is not a failure. A time that is
// not greater than zero would be a hot loop that no cap ends: it is refused, and fails the
// attempt as any other error does.
func Snooze(d time.Duration) error {
	if d <= 0 {
		return &InvalidError{Field: "snooze", Value: d.String(), Bound: "more than 0"}
	}
	return &handlerError{outcome: OutcomeSnoozed, delay: d}
}

// Cancel ends the job as Cancelled: it is not needed any more. Nil stays nil.
func Cancel(err error) error {
	if err == nil {
		return nil
	}
	return &handlerError{outcome: OutcomeCancelled, err: err}
}

// UnknownOutcome says that an effect may or may not have happened: the job is parked as
// Stuck and not retried (R10). Nil stays nil.
func UnknownOutcome(err error) error {
	if err == nil {
		return nil
	}
	return &handlerError{outcome: OutcomeUnknown, err: err}
}

// Classed says whether an error says by itself what it means for the job: one made by
// Permanent, RetryAfter, Snooze, Cancel or UnknownOutcome, wrapped or not.
func Classed(err error) bool {
	var h *handlerError
	return errors.As(err, &h)
}

// SettlementOf is what a handler's answer means for its job: nil completes, a classed error
// does what its class says, any other error fails the attempt and waits as the policy says.
// r is the random number of the policy. It is pure.
func SettlementOf(j JobInfo, err error, policy RetryPolicy, r float64) Settlement {
	s := Settlement{Ref: j.Ref(), Outcome: OutcomeCompleted}
	if err == nil {
		return s
	}
	// By fmt, which survives an Error method that panics, as on a nil pointer (R12).
	s.Outcome, s.Error = OutcomeFailed, SafeText(fmt.Sprint(err), MaxErrorBytes)
	var h *handlerError
	if errors.As(err, &h) {
		s.Outcome, s.Permanent = h.outcome, h.permanent
		if h.err == nil {
			s.Error = ""
		}
		if h.delay >= 0 {
			s.Delay = min(h.delay, MaxDelay)
			return s
		}
	}
	if s.Outcome == OutcomeFailed && !s.Permanent {
		s.Delay = DelayOf(policy, j.Attempt, r)
	}
	return s
}

// DelayOf asks the policy (nil = Exponential{}) and cuts its answer to 0..MaxDelay.
func DelayOf(policy RetryPolicy, attempt int, r float64) time.Duration {
	if policy == nil {
		policy = Exponential{}
	}
	return min(max(policy.Delay(attempt, r), 0), MaxDelay)
}
