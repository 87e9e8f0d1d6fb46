package api

import (
	"context"
	"errors"
	"html/template"
	"net/http"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/internal/clock"
)

// webhook takes in what the provider tells. Its answer means "kept": the provider sends again
// what was answered otherwise.
func (s *server) webhook(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	if err := psp.Verify(s.Secret, r.Header.Get(psp.SignatureHeader), body, clock.Now().Time(), s.Tolerance); err != nil {
		s.log.Warn("webhook refused", "error", err)
		if err := s.Book.RefuseWebhook(r.Context(), "signature", body, err); err != nil {
			s.log.Error("webhook refused", "error", err)
		}
		s.refuse(w, http.StatusUnauthorized, "bad signature")
		return
	}
	got, err := s.Book.Receive(r.Context(), body)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	status := http.StatusOK
	if got.Verdict == payments.Refused {
		s.log.Warn("webhook refused", "event", got.EventID, "why", got.Why)
		status = http.StatusUnprocessableEntity
	}
	s.answer(w, status, got)
}

var returnPage = template.Must(template.New("return").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Your payment</title>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
</html>
`))

// texts tell the payer what a payment is. Nothing of it comes from the address of the page.
var texts = map[string]string{
	payments.Pending:     "We do not know yet whether it went through. You need not pay again: this page will tell.",
	payments.Succeeded:   "It went through. Thank you.",
	payments.Failed:      "It did not go through. Nothing was charged.",
	payments.ChargedBack: "It was taken back by your bank, or a part of it.",
}

// returned is the page to which the provider sends payers back. It believes the provider, who
// is asked, and nothing in its address.
func (s *server) returned(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("payment")
	p, err := s.Book.Payment(r.Context(), id)
	switch {
	case errors.Is(err, pacht.ErrNotFound):
		s.page(w, http.StatusNotFound, "There is no such payment", "The address of this page is wrong. If you have paid, ask the shop.")
		return
	case err != nil:
		s.log.Error("return page", "payment", id, "error", err)
		s.page(w, http.StatusInternalServerError, "We cannot tell at the moment", "You need not pay again. Load this page again in a minute.")
		return
	}
	if p.Status == payments.Pending {
		p = s.refresh(r.Context(), p)
	}
	s.page(w, http.StatusOK, "Your payment of "+p.Amount.String(), texts[p.Status])
}

// page is for a payer, who reads no JSON.
func (s *server) page(w http.ResponseWriter, status int, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := returnPage.Execute(w, map[string]string{"Title": title, "Text": text}); err != nil {
		s.log.Debug("a page did not reach its reader", "error", err)
	}
}

// refresh asks the provider, for a moment, and applies what it says of money that was taken. That
// it has failed, or is not found, is left to those who can wait and ask again.
func (s *server) refresh(ctx context.Context, p payments.Payment) payments.Payment {
	ask, cancel := context.WithTimeout(ctx, returnTime)
	defer cancel()
	found, err := s.Provider.Lookup(ask, p.ID)
	if err != nil {
		s.log.Warn("the return page could not ask the provider", "payment", p.ID, "error", err)
		return p
	}
	for _, c := range found {
		if c.Status != psp.Succeeded {
			continue
		}
		v, err := s.Book.Apply(ctx, payments.News{Charge: c, By: "return page"})
		if err != nil {
			s.log.Error("return page", "payment", p.ID, "error", err)
			return p
		}
		return v.Payment
	}
	return p
}
