package psp

import (
	"errors"
	"net/http"

	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/money"
)

// simulator is what a real provider does not have, or only on pages for people.
func (s *Server) simulator() {
	s.mux.HandleFunc("PUT /simulator/scenarios/{reference}", s.setScenario)
	s.mux.HandleFunc("PUT /simulator/webhook", s.setWebhook)
	s.mux.HandleFunc("POST /simulator/refunds", s.dashboardRefund)
	s.mux.HandleFunc("POST /simulator/chargebacks", s.chargeback)
	s.mux.HandleFunc("POST /simulator/release", s.release)
}

// setScenario says what is to happen to a reference from now on. It is kept in the ledger.
func (s *Server) setScenario(w http.ResponseWriter, r *http.Request) {
	var told Scenario
	if !decode(w, r, &told) {
		return
	}
	if err := told.check(); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "scenario", err.Error())
		return
	}
	done(w, s.ledger.enter(func(*account) ([]entry, error) {
		return []entry{{What: entryScenario, Reference: r.PathValue("reference"), Scenario: &told, At: clock.Now().Time().UTC()}}, nil
	}))
}

func (s *Server) setWebhook(w http.ResponseWriter, r *http.Request) {
	var hook Webhook
	if !decode(w, r, &hook) {
		return
	}
	if err := hook.check(); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "webhook", err.Error())
		return
	}
	s.hook.Store(&hook)
	w.WriteHeader(http.StatusNoContent)
}

type atProvider struct {
	Charge string       `json:"charge"`
	Amount money.Amount `json:"amount"`
}

// dashboardRefund is a person at the provider's side who gives money back: it has no reference
// and no key of ours.
func (s *Server) dashboardRefund(w http.ResponseWriter, r *http.Request) {
	var o atProvider
	if !decode(w, r, &o) {
		return
	}
	if err := checkOrder("at the provider's side", o.Amount); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "refund", err.Error())
		return
	}
	refund, err := s.giveBack("", RefundOrder{Charge: o.Charge, Amount: o.Amount})
	if err != nil {
		done(w, err)
		return
	}
	answerJSON(w, http.StatusOK, refund)
}

func (s *Server) chargeback(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Charge string       `json:"charge"`
		Amount money.Amount `json:"amount,omitzero"` // missing: what is left
	}
	if !decode(w, r, &o) {
		return
	}
	if o.Amount != (money.Amount{}) {
		if err := checkOrder("at the payer's bank", o.Amount); err != nil {
			refuse(w, http.StatusUnprocessableEntity, "chargeback", err.Error())
			return
		}
	}
	done(w, s.takeBack(o.Charge, o.Amount))
}

func (s *Server) release(w http.ResponseWriter, _ *http.Request) {
	s.gate.release()
	w.WriteHeader(http.StatusNoContent)
}

func done(w http.ResponseWriter, err error) {
	var no *refusal
	switch {
	case errors.As(err, &no):
		refuse(w, no.status, no.code, no.message)
	case err != nil:
		refuse(w, http.StatusInternalServerError, "ledger", err.Error())
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
