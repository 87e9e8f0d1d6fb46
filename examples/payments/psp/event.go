package psp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

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
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var e Event
	if err := dec.Decode(&e); err != nil {
		return Event{}, fmt.Errorf("%w: event: %w", ErrGarbage, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Event{}, fmt.Errorf("%w: event: more than one document", ErrGarbage)
	}
	if e.ID == "" || len(e.ID) > 200 || e.Type == "" || strings.ContainsRune(e.ID+e.Type, 0) {
		return Event{}, fmt.Errorf("%w: event without id or type, or with a NUL in one: %.80q, %.80q", ErrGarbage, e.ID, e.Type)
	}
	if e.Refund != nil {
		if err := e.Refund.check(e.Charge.ID); err != nil {
			return Event{}, fmt.Errorf("event %.80q: %w", e.ID, err)
		}
	}
	return e, e.Charge.check()
}

// outgoing is an event before it is sent: its charge may be garbage on purpose.
type outgoing struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Created time.Time `json:"created"`
	Charge  any       `json:"charge"`
	Refund  *Refund   `json:"refund,omitempty"`
}

func (s *Server) event(kind string, c Charge, refund *Refund) outgoing {
	id := "evt_" + c.ID + "_" + kind
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
