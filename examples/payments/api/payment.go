package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/strict"
	"github.com/pacht-queue/pacht/money"
)

type paymentOrder struct {
	Amount money.Amount `json:"amount"`
	Payer  string       `json:"payer,omitempty"`
}

// created is what every request under one key is answered with.
type created struct {
	ID     string       `json:"id"`
	Amount money.Amount `json:"amount"`
	Status string       `json:"status"`
}

// create stores a payment and the job that charges it. The same key and body get the same
// answer, the same key and another body get 409.
func (s *server) create(w http.ResponseWriter, r *http.Request) {
	var o paymentOrder
	key, body, ok := s.ordered(w, r, &o)
	if !ok {
		return
	}
	if err := o.Amount.Validate(); err != nil {
		s.refuse(w, http.StatusUnprocessableEntity, "amount: it is missing")
		return
	}
	p := payments.Payment{ID: newID("pay"), Amount: o.Amount, Payer: o.Payer, ChargeWithin: s.ChargeWithin}
	answer, err := json.Marshal(created{p.ID, p.Amount, payments.Pending})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	said, err := s.Book.CreateOnce(r.Context(), p, payments.Once{
		Scope: "payments", Key: key, Fingerprint: fingerprint(body), Answer: string(answer),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.send(w, http.StatusCreated, "application/json", []byte(said))
}

// shown is a payment with its history.
type shown struct {
	payments.Payment
	Status      string                `json:"status"` // in place of the payment's own
	Refunds     []payments.Refund     `json:"refunds"`
	Transitions []payments.Transition `json:"transitions"`
}

func (s *server) payment(w http.ResponseWriter, r *http.Request) {
	p, err := s.Book.Payment(r.Context(), r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	page := shown{Payment: p, Status: p.Shown(), Refunds: []payments.Refund{}, Transitions: []payments.Transition{}}
	refunds, err := s.Book.Refunds(r.Context(), p.ID)
	transitions, err2 := s.Book.Transitions(r.Context(), p.ID)
	if err := errors.Join(err, err2); err != nil {
		s.fail(w, r, err)
		return
	}
	page.Refunds, page.Transitions = append(page.Refunds, refunds...), append(page.Transitions, transitions...)
	s.answer(w, http.StatusOK, page)
}

type refundOrder struct {
	Amount money.Amount `json:"amount"`
}

// refund stores a refund and the job that asks for it. More than is left is 422.
func (s *server) refund(w http.ResponseWriter, r *http.Request) {
	var o refundOrder
	key, body, ok := s.ordered(w, r, &o)
	if !ok {
		return
	}
	if err := o.Amount.Validate(); err != nil {
		s.refuse(w, http.StatusUnprocessableEntity, "amount: it is missing")
		return
	}
	refund := payments.Refund{ID: newID("ref"), PaymentID: r.PathValue("id"), Amount: o.Amount}
	answer, err := json.Marshal(created{refund.ID, refund.Amount, payments.Pending})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	said, err := s.Book.RefundOnce(r.Context(), refund, payments.Once{
		Scope: "refunds of " + refund.PaymentID, Key: key, Fingerprint: fingerprint(body), Answer: string(answer),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.send(w, http.StatusAccepted, "application/json", []byte(said))
}

// state is for whoever watches: how much is pending, and for how long.
func (s *server) state(w http.ResponseWriter, r *http.Request) {
	t, err := s.Book.Tally(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	balances, err := s.Book.Balances(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, http.StatusOK, map[string]any{
		"payments": t.Payments, "succeeded": t.Paid, "pending": t.Unpaid,
		"oldest_pending_seconds": int64(t.OldestPending.Seconds()), "stuck_jobs": t.Stuck,
		"balances": append([]payments.Balance{}, balances...),
	})
}

// ordered reads the key and the body of an order, as strict as package strict is.
func (s *server) ordered(w http.ResponseWriter, r *http.Request, into any) (key string, body []byte, ok bool) {
	key = r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		s.refuse(w, http.StatusBadRequest, "header Idempotency-Key: want 1 to 255 printable ASCII characters")
		return "", nil, false
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		s.refuse(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
		return "", nil, false
	}
	body, ok = s.body(w, r)
	if !ok {
		return "", nil, false
	}
	if err := strict.Decode(body, into); err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return "", nil, false
	}
	return key, body, true
}

func (s *server) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit))
	case err != nil:
		s.refuse(w, http.StatusBadRequest, "the body cannot be read")
	}
	return body, err == nil
}

// newID is an id that nobody can guess: who knows one may look at its payment.
func newID(kind string) string { return kind + "_" + rand.Text() }

func fingerprint(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
