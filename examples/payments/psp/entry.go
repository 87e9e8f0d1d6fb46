// Package psp simulates a payment provider: a real HTTP server with a ledger of its own. It
// honours idempotency keys, is slow, and sometimes fails, before the charge or after it. All
// of that is decided by a seed. It is for demonstrations and tests, on the loopback only.
package psp

import (
	"fmt"
	"time"
)

// Charge is what a customer of the provider asks for.
type Charge struct {
	Reference   string `json:"reference"`    // the customer's own name for it
	AmountMinor int64  `json:"amount_minor"` // in the currency's minor unit
	Currency    string `json:"currency"`
}

// What an entry of the ledger says.
const (
	Charged  = "charge"  // money was taken
	Declined = "decline" // refused for good; no money was taken
	Repeated = "repeat"  // a call whose key had an answer before; no money was taken
)

// Entry is one line of the provider's ledger.
type Entry struct {
	What string    `json:"what"`
	ID   string    `json:"id"`
	Key  string    `json:"key"`
	At   time.Time `json:"at"`
	Charge
}

// Totals sums up the ledger.
type Totals struct {
	Charges     int64            `json:"charges"`
	References  int64            `json:"references"`   // with at least one charge
	ChargedMore int64            `json:"charged_more"` // references with more than one charge
	Repeated    int64            `json:"repeated"`
	Declined    int64            `json:"declined"`
	AmountMinor map[string]int64 `json:"amount_minor"` // by currency
}

func (c Charge) check() error {
	switch {
	case c.Reference == "" || len(c.Reference) > 200:
		return fmt.Errorf("reference: %d bytes are not allowed, want 1 to 200", len(c.Reference))
	case c.AmountMinor <= 0:
		return fmt.Errorf("amount_minor: %d is not allowed, want more than 0", c.AmountMinor)
	case len(c.Currency) != 3:
		return fmt.Errorf("currency: %q is not allowed, want three letters", c.Currency)
	}
	return nil
}
