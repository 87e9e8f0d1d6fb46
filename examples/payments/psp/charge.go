package psp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/money"
)

func (s *Server) charge(w http.ResponseWriter, r *http.Request) {
	key, ok := idempotencyKey(w, r)
	var o Order
	if !ok || !decode(w, r, &o) {
		return
	}
	if err := checkOrder(o.Reference, o.Amount); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "charge", err.Error())
		return
	}
	s.carryOut(w, r, call{key: key, reference: o.Reference}, func() (any, error) { return s.take(key, o) })
}

// take makes the charge, or finds what its key has got already. With ignored keys every call is
// a new charge.
func (s *Server) take(key string, o Order) (any, error) {
	scenario := s.scenario(o.Reference)
	id, fresh := "", false
	err := s.ledger.enter(func(a *account) ([]entry, error) {
		now := clock.Now().Time().UTC()
		if first, ok := a.known(key, s.keyLife(scenario), now); ok && !s.cfg.IgnoreKeys {
			if first.Charge != "" || first.Reference != o.Reference || first.asked() != o.Amount {
				return nil, errOtherBody
			}
			id = first.ID
			return []entry{{What: entryRepeat, ID: id, Key: key, Reference: o.Reference, At: now}}, nil
		}
		entries := s.attempt(a, key, o, scenario, now)
		id, fresh = entries[len(entries)-1].ID, true
		return entries, nil
	})
	if err != nil {
		return nil, err
	}
	c := s.ledger.charge(id)
	if fresh {
		s.follow(c, scenario)
	}
	if c.Status == Failed {
		return nil, &refusal{http.StatusPaymentRequired, "card_declined", "the card was declined"}
	}
	return s.tell(c), nil
}

// attempt is what a fresh charge enters in the ledger: the charge itself comes last.
func (s *Server) attempt(a *account, key string, o Order, scenario Scenario, now time.Time) (entries []entry) {
	e := entry{What: entryCharge, ID: a.nextCharge(), Key: key, Reference: o.Reference, Amount: o.Amount, At: now}
	switch {
	case scenario.Name == Decline || clock.Seeded(s.cfg.Seed, "decline", key).Float64() < s.cfg.DeclineRate:
		e.What = entryDecline
	case scenario.Name == WebhookDisorder:
		failed := e
		failed.What, failed.Key = entryDecline, ""
		entries = append(entries, failed)
		e.What, e.ID = entryAccept, fmt.Sprintf("ch_%06d", len(a.charges)+2)
	case scenario.async():
		e.What = entryAccept
	case scenario.Name == WrongAmount:
		if e.Amount = scenario.wrong(o.Amount); e.Amount != o.Amount {
			e.Asked = o.Amount
		}
	}
	return append(entries, e)
}

// wrong is what is taken in place of an amount.
func (s Scenario) wrong(a money.Amount) money.Amount {
	switch s.Variant {
	case "", Lower:
		a.Minor = max(a.Minor-100, 1)
	case Higher:
		a.Minor += 100
	case OtherCurrency:
		other := money.Currency("USD")
		if a.Currency == other {
			other = "EUR"
		}
		a.Currency = other
	}
	return a
}

func (s *Server) keyLife(scenario Scenario) time.Duration {
	if scenario.Name == KeyForgotten {
		return scenario.After
	}
	return s.cfg.KeyLife
}

// follow sends what a fresh charge causes: its events, and what happens later.
func (s *Server) follow(c Charge, scenario Scenario) {
	switch c.Status {
	case Failed:
		if s.cfg.QuietAnswers {
			return
		}
		s.announce("charge.failed", c, nil, scenario)
	case Pending:
		if scenario.Name != WebhookDisorder {
			s.announce("charge.pending", c, nil, scenario)
		}
		s.later(scenario.After, func() error { return s.capture(c.ID, scenario) })
	case Succeeded:
		if !s.cfg.QuietAnswers {
			s.announce("charge.succeeded", c, nil, scenario)
		}
		if scenario.Name == ChargedBack {
			s.later(scenario.After, func() error { return s.takeBack(c.ID, money.Amount{}) })
		}
	}
}

// capture takes the money of a charge that was only accepted.
func (s *Server) capture(id string, scenario Scenario) error {
	accepted, done := Charge{}, false
	err := s.ledger.enter(func(a *account) ([]entry, error) {
		c := a.charges[id]
		if done = c.Status != Pending; done {
			return nil, nil
		}
		accepted = c.view()
		return []entry{{What: entryCharge, ID: id, Reference: c.Reference, Amount: c.Amount, At: clock.Now().Time().UTC()}}, nil
	})
	if err != nil || done {
		return err
	}
	c := s.ledger.charge(id)
	switch scenario.Name {
	case WebhookLate:
		s.later(scenario.After, func() error { s.announce("charge.succeeded", c, nil, scenario); return nil })
	case WebhookDisorder:
		s.disorder(accepted, c)
	default:
		s.announce("charge.succeeded", c, nil, scenario)
	}
	return nil
}

// takeBack is the payer's bank: it takes a part of a charge, or what is left of it if part is
// zero. A bank that takes a part does not ask what was given back before.
func (s *Server) takeBack(id string, part money.Amount) error {
	none := false
	err := s.ledger.enter(func(a *account) ([]entry, error) {
		c, left := a.left(id)
		if c == nil {
			return nil, &refusal{http.StatusNotFound, "no_such_charge", id}
		}
		back := part
		if back == (money.Amount{}) {
			back = money.Amount{Minor: max(left, 0), Currency: c.Amount.Currency}
		}
		switch {
		case back.Currency != c.Amount.Currency || back.Minor > c.Amount.Minor-c.ChargedBack || c.Status != Succeeded:
			return nil, &refusal{http.StatusUnprocessableEntity, "over_chargeback", fmt.Sprintf("%s of charge %s of %s, %s", back, c.ID, c.Amount, c.Status)}
		case back.Minor == 0:
			none = true
			return nil, nil
		}
		return []entry{{
			What: entryChargeback, ID: fmt.Sprintf("cb_%s_%d", id, c.ChargedBack+back.Minor), Charge: id, Reference: c.Reference,
			Amount: back, At: clock.Now().Time().UTC(),
		}}, nil
	})
	if err != nil || none {
		return err
	}
	c := s.ledger.charge(id)
	s.announce(chargedBack, c, nil, s.scenario(c.Reference))
	return nil
}

// resume goes on with what was to come when the provider was stopped. Events that were not
// delivered then are lost.
func (s *Server) resume() {
	var open []Charge
	s.ledger.look(func(a *account) {
		for _, c := range a.order {
			if c.Status == Pending || c.Status == Succeeded && c.ChargedBack == 0 {
				open = append(open, c.view())
			}
		}
	})
	for _, c := range open {
		scenario := s.scenario(c.Reference)
		switch {
		case c.Status == Pending:
			s.later(scenario.After, func() error { return s.capture(c.ID, scenario) })
		case scenario.Name == ChargedBack:
			s.later(scenario.After, func() error { return s.takeBack(c.ID, money.Amount{}) })
		}
	}
}

func (l *ledger) charge(id string) (c Charge) {
	l.look(func(a *account) { c = a.charges[id].view() })
	return c
}
