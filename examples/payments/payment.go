package payments

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/money"
)

// What a payment is, as the database has it. That money was given back is told by its refunds.
const (
	Pending     = "pending"
	Succeeded   = "succeeded"
	Failed      = "failed" // for good, unless the provider took the money after all
	ChargedBack = "charged_back"
)

// Payment is one payment.
type Payment struct {
	ID          string       `json:"id"`
	Amount      money.Amount `json:"amount"`
	Payer       string       `json:"payer,omitempty"`
	Status      string       `json:"status"`
	ChargeID    string       `json:"charge_id,omitempty"` // the provider's attempt that made it what it is
	Why         string       `json:"why,omitempty"`
	Refunded    int64        `json:"refunded_minor"`     // given back
	ChargedBack int64        `json:"charged_back_minor"` // taken back by the payer's bank, so far
	Refunding   int64        `json:"refunding_minor"`    // asked to be given back, and not answered yet
	CreatedAt   time.Time    `json:"created_at,omitzero"`
	Rev         int64        `json:"rev,omitempty"` // grows with each change

	// ChargeWithin is how long it may be charged from its creation; 0 = for ever. Set to
	// create one.
	ChargeWithin time.Duration `json:"-"`
	// Expired says that this time is over, by the database's clock.
	Expired bool `json:"-"`
}

// Taken says whether money was taken for it.
func (p Payment) Taken() bool { return p.Status == Succeeded || p.Status == ChargedBack }

// Shown is its status for people, with what was given back.
func (p Payment) Shown() string {
	switch {
	case p.Status != Succeeded || p.Refunded == 0:
		return p.Status
	case p.Refunded == p.Amount.Minor:
		return "refunded"
	}
	return "partially_refunded"
}

// MaxMinor is the most that one payment may be, in minor units of its currency: 10^13. It is far
// from where sums of amounts would overflow.
const MaxMinor = 10_000_000_000_000

// isID says whether a payment can have this id. Others are not even looked for: PostgreSQL fails
// on text with a NUL or that is not UTF-8, and SQLite cuts it off.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && isText(id)
}

const (
	maxID     = 100 // bytes
	textBound = "UTF-8 without NUL"
)

// isText says whether both databases can store a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func (p Payment) check() error {
	switch {
	case p.ID == "" || len(p.ID) > maxID:
		return &pacht.InvalidError{Field: "payment id", Value: fmt.Sprintf("%d bytes", len(p.ID)), Bound: "1 to 100 bytes"}
	case !isID(p.ID):
		return &pacht.InvalidError{Field: "payment id", Value: fmt.Sprintf("%.100q", p.ID), Bound: textBound}
	case !isText(p.Payer):
		return &pacht.InvalidError{Field: "payer", Value: fmt.Sprintf("%.100q", p.Payer), Bound: textBound}
	case len(p.Payer) > 100:
		return &pacht.InvalidError{Field: "payer", Value: fmt.Sprintf("%d bytes", len(p.Payer)), Bound: "at most 100 bytes"}
	case p.Amount.Minor <= 0:
		return &pacht.InvalidError{Field: "amount_minor", Value: strconv.FormatInt(p.Amount.Minor, 10), Bound: "more than 0"}
	case p.Amount.Minor > MaxMinor:
		return &pacht.InvalidError{Field: "amount_minor", Value: strconv.FormatInt(p.Amount.Minor, 10), Bound: "at most 10000000000000 (10^13)"}
	case p.Amount.Validate() != nil:
		return &pacht.InvalidError{Field: "currency", Value: fmt.Sprintf("%.10q", string(p.Amount.Currency)), Bound: "an active code of ISO 4217"}
	case p.ChargeWithin < 0 || p.ChargeWithin > pacht.MaxDelay:
		return &pacht.InvalidError{Field: "charge within", Value: p.ChargeWithin.String(), Bound: "0 to 8760h"}
	}
	return nil
}

// Refund is money given back, or about to be: asked for here, or made at the provider's side.
type Refund struct {
	ID         string       `json:"id"`
	PaymentID  string       `json:"payment_id"`
	Amount     money.Amount `json:"amount"`
	Status     string       `json:"status"` // Pending, Succeeded or Failed
	ProviderID string       `json:"provider_id,omitempty"`
	Origin     string       `json:"origin"` // "here" or "there"
	Why        string       `json:"why,omitempty"`
}
