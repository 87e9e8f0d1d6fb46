package psp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What callers of the provider branch on. Only declined, refused, busy, turned away and not sent
// say that nothing was done, and only declined and refused that nothing will be.
var (
	// ErrDeclined: refused for good. Nothing was done, and nothing will be.
	ErrDeclined = errors.New("declined by the provider")
	// ErrRefused: this very order is wrong, or asks for more than there is, as the provider has
	// said by a code that we know. Nothing was done; sending it again gives the same answer.
	ErrRefused = errors.New("refused by the provider")
	// ErrConflict: what was asked for does not fit what the provider has: a key was used for
	// another request, or a list has changed while it was read. It says nothing of what was
	// done under that key.
	ErrConflict = errors.New("conflict at the provider")
	// ErrBusy: refused for now. Nothing was done; ask again after RetryAfter.
	ErrBusy = errors.New("the provider is busy")
	// ErrTurnedAway: the request was not taken at all: a wrong API key, address or form, or
	// something in between that answered instead. It says nothing of the order. Nothing was done;
	// once somebody has mended it, ask again, after RetryAfter.
	ErrTurnedAway = errors.New("turned away by the provider")
	// ErrNotSent: no connection was made, so nothing was sent.
	ErrNotSent = errors.New("not sent to the provider")
	// ErrUnanswered: no answer, or one that does not say what happened. It may have been done
	// or not; with the same key it is safe to ask again, as long as the provider remembers it.
	ErrUnanswered = errors.New("no answer from the provider")
	// ErrGarbage: an answer that makes no sense.
	ErrGarbage = errors.New("garbage from the provider")
)

// turnedAwayFor is how long to wait when the provider does not say: people must mend it first.
const turnedAwayFor = 5 * time.Minute

// refusals are the codes of ErrRefused.
var refusals = map[string]bool{"charge": true, "refund": true, "over_refund": true, "no_such_charge": true}

// laterError is ErrBusy or ErrTurnedAway, with the time to wait.
type laterError struct {
	class error
	said  string
	after time.Duration
}

func (e *laterError) Error() string { return e.class.Error() + ": " + e.said }
func (e *laterError) Unwrap() error { return e.class }

// RetryAfter is how long to wait before it is asked again; 0 if that is not known.
func RetryAfter(err error) time.Duration {
	var later *laterError
	if errors.As(err, &later) {
		return later.after
	}
	return 0
}

// later is what the header Retry-After says, if that makes sense.
func later(res *http.Response, class error, said string, usual time.Duration) error {
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds >= 0 && seconds <= 3600 {
		usual = time.Duration(seconds) * time.Second
	}
	return &laterError{class: class, said: said, after: usual}
}

// failure classes an error of the transport.
func failure(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, err)
}

// refused classes an answer that is no success. Only a word on this very order is final.
func refused(res *http.Response) error {
	var p problem
	if err := json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&p); err != nil {
		p.Message = "with no reason that can be read"
	}
	said := fmt.Sprintf("%d %.100s: %.1000s", res.StatusCode, p.Code, p.Message)
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		return later(res, ErrBusy, said, time.Second)
	case res.StatusCode == http.StatusPaymentRequired:
		return fmt.Errorf("%w: %s", ErrDeclined, said)
	case res.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w: %s", ErrConflict, said)
	case res.StatusCode == http.StatusUnprocessableEntity && refusals[p.Code]:
		return fmt.Errorf("%w: %s", ErrRefused, said)
	case res.StatusCode >= 400 && res.StatusCode < 500 && res.StatusCode != http.StatusRequestTimeout:
		return later(res, ErrTurnedAway, said, turnedAwayFor)
	}
	return fmt.Errorf("%w: %s", ErrUnanswered, said)
}

// check refuses a charge that makes no sense.
func (c Charge) check() error {
	switch c.Status {
	case Pending, Succeeded, Failed:
	default:
		return fmt.Errorf("%w: charge %.80q has the status %.40q", ErrGarbage, c.ID, c.Status)
	}
	if c.ID == "" || c.Reference == "" || strings.ContainsRune(c.ID+c.Reference, 0) {
		return fmt.Errorf("%w: charge without id or reference, or with a NUL in one: %.80q, %.80q", ErrGarbage, c.ID, c.Reference)
	}
	if err := checkOrder(c.Reference, c.Amount); err != nil {
		return fmt.Errorf("%w: charge %.80q: %w", ErrGarbage, c.ID, err)
	}
	// More than was taken can be, if a bank takes back what was refunded: that is for a person.
	if c.Refunded < 0 || c.ChargedBack < 0 || c.Status != Succeeded && (c.Refunded > 0 || c.ChargedBack > 0) {
		return fmt.Errorf("%w: charge %.80q of %s is %s: refunded %d, charged back %d", ErrGarbage, c.ID, c.Amount, c.Status, c.Refunded, c.ChargedBack)
	}
	for _, r := range c.Refunds {
		if err := r.check(c.ID); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a refund of a charge that makes no sense.
func (r Refund) check(charge string) error {
	switch {
	case r.ID == "" || r.Charge != charge:
		return fmt.Errorf("%w: refund %.80q of charge %.80q, want one of %.80q", ErrGarbage, r.ID, r.Charge, charge)
	case r.Status != Pending && r.Status != Succeeded && r.Status != Failed:
		return fmt.Errorf("%w: refund %.80q has the status %.40q", ErrGarbage, r.ID, r.Status)
	case r.Amount.Minor <= 0 || r.Amount.Validate() != nil:
		return fmt.Errorf("%w: refund %.80q of %s", ErrGarbage, r.ID, r.Amount)
	case strings.ContainsRune(r.ID+r.Reference, 0):
		return fmt.Errorf("%w: refund %.80q of reference %.80q has a NUL", ErrGarbage, r.ID, r.Reference)
	}
	return nil
}
