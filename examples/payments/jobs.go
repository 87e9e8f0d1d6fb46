package payments

import (
	"encoding/json"

	"github.com/pacht-queue/pacht"
)

// Charge is the job that takes a payment's money.
type Charge struct {
	PaymentID   string `json:"payment_id"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

// Kind implements pacht.Args.
func (Charge) Kind() string { return "charge" }

// EnqueueOptions implements pacht.ArgsWithOptions. After a crash it may run again: what was
// asked of the provider is in the record of effects, and nothing is asked twice.
func (Charge) EnqueueOptions() []pacht.Option {
	return []pacht.Option{pacht.OnCrash(pacht.CrashRetry)}
}

// GiveBack is the job that asks the provider for a refund.
type GiveBack struct {
	RefundID  string `json:"refund_id"`
	PaymentID string `json:"payment_id"`
}

// Kind implements pacht.Args.
func (GiveBack) Kind() string { return "refund" }

// EnqueueOptions implements pacht.ArgsWithOptions.
func (GiveBack) EnqueueOptions() []pacht.Option {
	return []pacht.Option{pacht.OnCrash(pacht.CrashRetry)}
}

// Receipt is the job that tells the payer, once for each payment that succeeded.
type Receipt struct {
	PaymentID string `json:"payment_id"`
}

// Kind implements pacht.Args.
func (Receipt) Kind() string { return "receipt" }

// Parked is the job that tries an event again whose payment was not there.
type Parked struct {
	EventID string          `json:"event_id"`
	Hash    string          `json:"hash"` // of the body as it came
	Body    json.RawMessage `json:"body"`
}

// Kind implements pacht.Args.
func (Parked) Kind() string { return "parked_event" }

// EnqueueOptions implements pacht.ArgsWithOptions: a transaction that was open when the event
// came has ended after a few tries.
func (Parked) EnqueueOptions() []pacht.Option {
	return []pacht.Option{pacht.MaxAttempts(6)}
}

// Misfit is the job that opens a break for a person: news of a payment that do not fit it.
type Misfit struct {
	Reference   string          `json:"reference"`
	Class       string          `json:"class"`
	Reason      string          `json:"reason"`
	AmountMinor int64           `json:"amount_minor"`
	Currency    string          `json:"currency"`
	Theirs      json.RawMessage `json:"theirs"` // what the provider told
}

// Kind implements pacht.Args.
func (Misfit) Kind() string { return "misfit" }
