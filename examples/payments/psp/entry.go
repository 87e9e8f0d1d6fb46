package psp

import (
	"time"

	"github.com/pacht-queue/pacht/money"
)

// What an entry of the ledger says.
const (
	entryAccept     = "accept"     // a charge that is on its way
	entryCharge     = "charge"     // money was taken
	entryDecline    = "decline"    // a charge that was refused for good; no money was taken
	entryRefund     = "refund"     // money was given back
	entryNoRefund   = "no_refund"  // a refund that was refused for good
	entryChargeback = "chargeback" // money was taken back
	entryRepeat     = "repeat"     // a call whose key had an answer before; no money moved
	entryScenario   = "scenario"   // what the simulator was told to do with a reference
)

// entry is one line of the provider's ledger.
type entry struct {
	What      string       `json:"what"`
	ID        string       `json:"id,omitempty"`
	Key       string       `json:"key,omitempty"`
	Reference string       `json:"reference,omitempty"`
	Charge    string       `json:"charge,omitempty"` // of a refund or a chargeback
	Amount    money.Amount `json:"amount,omitzero"`
	Asked     money.Amount `json:"asked,omitzero"` // if another amount was asked for
	Scenario  *Scenario    `json:"scenario,omitempty"`
	At        time.Time    `json:"at"`
}

// asked is what the customer asked for, to compare a second call under the same key with.
func (e entry) asked() money.Amount {
	if e.Asked != (money.Amount{}) {
		return e.Asked
	}
	return e.Amount
}

// Totals sums up the ledger.
type Totals struct {
	Charges     int64            `json:"charges"`      // that took money
	References  int64            `json:"references"`   // with at least one of them
	ChargedMore int64            `json:"charged_more"` // references with more than one
	Pending     int64            `json:"pending"`      // charges on their way
	Declined    int64            `json:"declined"`
	Repeated    int64            `json:"repeated"`
	Refunds     int64            `json:"refunds"`
	Chargebacks int64            `json:"chargebacks"`
	Charged     map[string]int64 `json:"charged_minor"` // by currency
	Refunded    map[string]int64 `json:"refunded_minor"`
	ChargedBack map[string]int64 `json:"charged_back_minor"`
}

// Net is what is left of a currency's charges.
func (t Totals) Net(currency string) int64 {
	return t.Charged[currency] - t.Refunded[currency] - t.ChargedBack[currency]
}
