package psp

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht/examples/payments/strict"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Event is what a webhook tells. The same fact has the same id, however often it is sent.
type Event struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Created time.Time `json:"created"`
	Charge  Charge    `json:"charge"` // as it was when the event was made
	Refund  *Refund   `json:"refund,omitempty"`
}

// ParseEvent reads a webhook's body; nothing in it that is missing becomes zero.
func ParseEvent(body []byte) (Event, error) {
	var e Event
	if err := strict.Decode(body, &e); err != nil {
		return Event{}, fmt.Errorf("%w: event: %w", ErrGarbage, err)
	}
	if e.ID == "" || len(e.ID) > maxName || e.Type == "" || len(e.Type) > maxName {
		return Event{}, fmt.Errorf("%w: event without id or type, or with one of more than %d bytes: %.80q, %.80q", ErrGarbage, maxName, e.ID, e.Type)
	}
	if err := e.Charge.check(); err != nil {
		return Event{}, fmt.Errorf("event %.80q: %w", e.ID, err)
	}
	refunds := e.Charge.Refunds
	if e.Refund != nil {
		if err := e.Refund.check(e.Charge.ID); err != nil {
			return Event{}, fmt.Errorf("event %.80q: %w", e.ID, err)
		}
		refunds = append(slices.Clone(refunds), *e.Refund)
	}
	if len(e.Charge.ID) > maxName {
		return Event{}, fmt.Errorf("%w: event %.80q: the charge's id has %d bytes, at most %d", ErrGarbage, e.ID, len(e.Charge.ID), maxName)
	}
	for _, r := range refunds {
		if len(r.ID) > maxName || len(r.Reference) > maxName {
			return Event{}, fmt.Errorf("%w: event %.80q: refund %.80q has an id or reference of more than %d bytes", ErrGarbage, e.ID, r.ID, maxName)
		}
		if r.Amount.Currency == e.Charge.Amount.Currency && r.Amount.Minor > e.Charge.Amount.Minor {
			return Event{}, fmt.Errorf("%w: event %.80q: refund %.80q of %s of a charge of %s", ErrGarbage, e.ID, r.ID, r.Amount, e.Charge.Amount)
		}
	}
	return e, nil
}

// maxName is how many bytes an id or a type may have: they stand in keys of indexes.
const maxName = 200

// outgoing is an event before it is sent: its charge may be garbage on purpose.
type outgoing struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Created time.Time `json:"created"`
	Charge  any       `json:"charge"`
	Refund  *Refund   `json:"refund,omitempty"`
}

const chargedBack = "charge.charged_back"

func (s *Server) event(kind string, c Charge, refund *Refund) outgoing {
	id := "evt_" + c.ID + "_" + kind
	if kind == chargedBack { // it may happen to a charge several times
		id += "_" + strconv.FormatInt(c.ChargedBack, 10)
	}
	if refund != nil {
		id = "evt_" + refund.ID + "_" + kind
	}
	return outgoing{ID: id, Type: kind, Created: clock.Now().Time().UTC(), Charge: s.tell(c), Refund: refund}
}

// announce sends an event as its charge's scenario wants it.
func (s *Server) announce(kind string, c Charge, refund *Refund, scenario Scenario) {
	copies := 1
	switch scenario.Name {
	case WebhookLost:
		return
	case WebhookTwice:
		copies = 2
	}
	e := s.event(kind, c, refund)
	for range copies {
		s.later(0, func() error { return s.deliver(e) })
	}
}

// disorder sends what happened to a reference newest first, and its oldest event once more.
func (s *Server) disorder(accepted, done Charge) {
	failed := accepted
	s.ledger.look(func(a *account) {
		for _, each := range a.byRef[accepted.Reference] {
			if each.Status == Failed {
				failed = each.view()
				break
			}
		}
	})
	old := s.event("charge.failed", failed, nil)
	events := []outgoing{s.event("charge.succeeded", done, nil), s.event("charge.pending", accepted, nil), old, old}
	s.later(0, func() error {
		for _, e := range events {
			if err := s.deliver(e); err != nil {
				return err
			}
		}
		return nil
	})
}
