// Package payments is an example of a payments system on the queue: a payment and the job that
// charges it are created in one transaction, and the payment is marked paid in one transaction
// with the job's completion. In between stands a call to a provider that cannot be rolled back.
//
// The charge job is retried after a crash, because the provider honours idempotency keys: the
// same key is charged once, however often it is asked. With a provider that does not, the kind
// would have to be enqueued with pacht.OnCrash(pacht.CrashHold).
package payments

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/pacht-queue/pacht"
)

// What a payment is.
const (
	Created  = "created"
	Paid     = "paid"     // and ChargeRef names the provider's charge
	Declined = "declined" // by the provider, for good
)

// Payment is one row of the business table.
type Payment struct {
	ID          string `json:"id"`
	AmountMinor int64  `json:"amount_minor"` // whole minor units: money is never a float
	Currency    string `json:"currency"`
	Status      string `json:"status"`
	ChargeRef   string `json:"charge_ref,omitempty"`
}

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

func (p Payment) check() error {
	switch {
	case p.ID == "" || len(p.ID) > 100:
		return &pacht.InvalidError{Field: "payment id", Value: fmt.Sprintf("%d bytes", len(p.ID)), Bound: "1 to 100 bytes"}
	case p.AmountMinor <= 0:
		return &pacht.InvalidError{Field: "amount_minor", Value: strconv.FormatInt(p.AmountMinor, 10), Bound: "more than 0"}
	case !currencyPattern.MatchString(p.Currency):
		return &pacht.InvalidError{Field: "currency", Value: fmt.Sprintf("%.10q", p.Currency), Bound: "three letters A to Z"}
	}
	return nil
}

// Charge is the job that takes a payment's money.
type Charge struct {
	PaymentID   string `json:"payment_id"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

// Kind implements pacht.Args.
func (Charge) Kind() string { return "charge" }

// EnqueueOptions implements pacht.ArgsWithOptions.
func (Charge) EnqueueOptions() []pacht.Option {
	return []pacht.Option{pacht.OnCrash(pacht.CrashRetry)}
}
