package psp

import (
	"fmt"
	"net/http"

	"github.com/pacht-queue/pacht/internal/clock"
)

func (s *Server) refund(w http.ResponseWriter, r *http.Request) {
	key, ok := idempotencyKey(w, r)
	var o RefundOrder
	if !ok || !decode(w, r, &o) {
		return
	}
	if err := checkOrder(o.Reference, o.Amount); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "refund", err.Error())
		return
	}
	s.carryOut(w, r, call{key: key, reference: o.Reference}, func() (any, error) { return s.giveBack(key, o) })
}

// giveBack makes the refund, or finds what its key has got already. More than is left of the
// charge is refused. Without a key it was made at the provider's side.
func (s *Server) giveBack(key string, o RefundOrder) (any, error) {
	scenario := s.scenario(o.Reference)
	id, fresh := "", false
	err := s.ledger.enter(func(a *account) ([]entry, error) {
		now := clock.Now().Time().UTC()
		if first, ok := a.known(key, s.keyLife(scenario), now); ok && key != "" && !s.cfg.IgnoreKeys {
			if first.Charge != o.Charge || first.Reference != o.Reference || first.Amount != o.Amount {
				return nil, errOtherBody
			}
			id = first.ID
			return []entry{{What: entryRepeat, ID: id, Key: key, Reference: o.Reference, At: now}}, nil
		}
		c, left := a.left(o.Charge)
		switch {
		case c == nil:
			return nil, &refusal{http.StatusUnprocessableEntity, "no_such_charge", fmt.Sprintf("there is no charge %.40q", o.Charge)}
		case c.Amount.Currency != o.Amount.Currency || o.Amount.Minor > left:
			return nil, &refusal{http.StatusUnprocessableEntity, "over_refund",
				fmt.Sprintf("refund of %s: of %s of charge %s %d minor units are left", o.Amount, c.Amount, c.ID, left)}
		}
		e := entry{What: entryRefund, ID: a.nextRefund(), Key: key, Reference: o.Reference, Charge: o.Charge, Amount: o.Amount, At: now}
		if scenario.Name == Decline && key != "" {
			e.What = entryNoRefund
		}
		id, fresh = e.ID, true
		return []entry{e}, nil
	})
	if err != nil {
		return nil, err
	}
	var refund Refund
	s.ledger.look(func(a *account) { refund = *a.refunds[id] })
	if fresh && (key == "" || !s.cfg.QuietAnswers) {
		c := s.ledger.charge(refund.Charge)
		s.announce("refund."+refund.Status, c, &refund, s.scenario(c.Reference))
	}
	if refund.Status == Failed {
		return nil, &refusal{http.StatusPaymentRequired, "refund_declined", "the refund was declined"}
	}
	return refund, nil
}
