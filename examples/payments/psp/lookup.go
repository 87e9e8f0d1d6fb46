package psp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

const mostListed = 100

type chargeList struct {
	Charges []any  `json:"charges"`
	Next    string `json:"next,omitempty"`
}

// list answers the charges of ?reference=, or a page of all that were made since ?since=, in
// the order in which they were asked for, after ?cursor=. A cursor is stable: a page behind it
// misses nothing and has nothing twice. If a charge has turned up before the cursor meanwhile,
// it is refused, and the list must be read again from its beginning.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Has("reference") {
		if !s.gate.pass(r.Context().Done(), q.Get("reference")) {
			return
		}
		answerJSON(w, http.StatusOK, chargeList{Charges: s.lookup(q.Get("reference"))})
		return
	}
	since, err := time.Parse(time.RFC3339Nano, q.Get("since"))
	if err != nil && q.Has("since") {
		refuse(w, http.StatusBadRequest, "since", err.Error())
		return
	}
	from, before := 0, 0
	if cursor := q.Get("cursor"); cursor != "" {
		_, err := fmt.Sscanf(cursor, "%d.%d", &from, &before)
		if err != nil || from < 0 || before < 0 || fmt.Sprintf("%d.%d", from, before) != cursor {
			refuse(w, http.StatusBadRequest, "cursor", "it is none of ours")
			return
		}
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > mostListed {
		limit = mostListed
	}
	page, next, changed := s.page(since, from, before, limit)
	if changed {
		refuse(w, http.StatusConflict, "list_changed", "an older charge has turned up since the cursor was given: read the list again from its beginning")
		return
	}
	answerJSON(w, http.StatusOK, chargeList{Charges: page, Next: next})
}

func (s *Server) page(since time.Time, from, before, limit int) (page []any, next string, changed bool) {
	var all []Charge
	s.ledger.look(func(a *account) {
		for _, c := range a.order {
			all = append(all, c.view())
		}
	})
	now := clock.Now().Time()
	listed := func(c Charge) bool {
		scenario := s.scenario(c.Reference)
		late := scenario.Name == ListShift || scenario.Name == LookupLate
		return !c.At.Before(since) && !(late && now.Sub(c.At) < scenario.After)
	}
	page, seen := []any{}, 0
	for i, c := range all {
		switch {
		case !listed(c):
		case i < from:
			seen++
		case len(page) == limit:
			return page, fmt.Sprintf("%d.%d", i, seen+limit), seen != before
		default:
			page = append(page, s.tell(c))
		}
	}
	return page, "", seen != before
}

func (s *Server) lookup(reference string) []any {
	var found []Charge
	s.ledger.look(func(a *account) {
		for _, c := range a.byRef[reference] {
			found = append(found, c.view())
		}
	})
	scenario, now := s.scenario(reference), clock.Now().Time()
	told := []any{}
	for _, c := range found {
		if s.cfg.Blind || scenario.Name == LookupLate && now.Sub(c.At) < scenario.After {
			continue
		}
		told = append(told, s.tell(c))
	}
	return told
}

// refunds answers the refunds of ?reference=.
func (s *Server) refunds(w http.ResponseWriter, r *http.Request) {
	reference := r.URL.Query().Get("reference")
	scenario, now := s.scenario(reference), clock.Now().Time()
	list := struct {
		Refunds []Refund `json:"refunds"`
	}{Refunds: []Refund{}}
	s.ledger.look(func(a *account) {
		for _, each := range a.refundRef[reference] {
			if scenario.Name != LookupLate || now.Sub(each.At) >= scenario.After {
				list.Refunds = append(list.Refunds, *each)
			}
		}
	})
	answerJSON(w, http.StatusOK, list)
}

func (s *Server) totals(w http.ResponseWriter, _ *http.Request) {
	var t Totals
	s.ledger.look(func(a *account) { t = a.totals.clone() })
	answerJSON(w, http.StatusOK, t)
}

// tell is a charge as the provider tells of it, which may be garbage.
func (s *Server) tell(c Charge) any {
	scenario := s.scenario(c.Reference)
	if scenario.Name != WrongAmount {
		return c
	}
	raw, err := json.Marshal(c)
	fields := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		return c // cannot be: it is our own struct
	}
	switch scenario.Variant {
	case Null:
		fields["amount"] = json.RawMessage(`null`)
	case Missing:
		delete(fields, "amount")
	case Decimal:
		fields["amount"] = json.RawMessage(fmt.Sprintf(`{"amount_minor":"%s000000","currency":%q}`, c.Amount.Decimal(), c.Amount.Currency))
	case Stranger:
		fields["reference"] = json.RawMessage(`"somebody-else"`)
	default:
		return c
	}
	return fields
}
