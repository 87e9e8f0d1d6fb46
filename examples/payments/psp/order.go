package psp

import (
	"fmt"
	"time"

	"github.com/pacht-queue/pacht/money"
)

// Order is what a customer of the provider asks to be charged.
type Order struct {
	Reference string       `json:"reference"` // the customer's own name for it
	Amount    money.Amount `json:"amount"`
}

// RefundOrder asks for money to be given back.
type RefundOrder struct {
	Reference string       `json:"reference"` // the customer's own name for the refund
	Charge    string       `json:"charge"`    // the provider's name of the charge
	Amount    money.Amount `json:"amount"`
}

// What a charge or a refund is.
const (
	Pending   = "pending"   // accepted; the money moves later, or not
	Succeeded = "succeeded" // the money has moved
	Failed    = "failed"    // refused for good
)

// Charge is one attempt to take money, as the provider tells of it.
type Charge struct {
	ID          string       `json:"id"`
	Reference   string       `json:"reference"`
	Status      string       `json:"status"`
	Amount      money.Amount `json:"amount"`                       // what is taken
	Refunded    int64        `json:"refunded_minor,omitempty"`     // given back so far
	ChargedBack int64        `json:"charged_back_minor,omitempty"` // taken back by the payer's bank
	Refunds     []Refund     `json:"refunds,omitempty"`
	At          time.Time    `json:"at"` // when it was asked for
}

// Refund is money given back.
type Refund struct {
	ID        string       `json:"id"`
	Reference string       `json:"reference,omitempty"` // empty if it was made at the provider's side
	Charge    string       `json:"charge"`
	Status    string       `json:"status"`
	Amount    money.Amount `json:"amount"`
	At        time.Time    `json:"at"`
}

func checkOrder(reference string, amount money.Amount) error {
	switch {
	case reference == "" || len(reference) > 200:
		return fmt.Errorf("reference: %d bytes are not allowed, want 1 to 200", len(reference))
	case amount.Minor <= 0:
		return fmt.Errorf("amount: %s is not allowed, want more than 0", amount)
	}
	return amount.Validate()
}
