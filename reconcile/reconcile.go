// Package reconcile finds out from the provider what really happened, and makes the record say
// so.
//
//	effects without an answer ┐                                   ┌ heal: one transition of the user's
//	parked jobs               ├─ ask the provider ─ compare ─ class ┼ wait: ask again, up to an age
//	rows that stay pending    │                                   └ hold: for a person
//	the provider's own list   ┘
//
// It runs as a job on the lease mechanism itself: Handle is its handler, Run enqueues a pass
// whenever one is due, and any number of processes may do both. Every decision is a row in the
// table decisions, and the state of each difference a row in the table breaks.
//
//	r, err := reconcile.New(reconcile.Config{Store: store, Ours: book, Theirs: psp, Effects: effects})
//	w, err := worker.New(store, worker.Config{
//		Queues:   map[string]int{pacht.DefaultQueue: 50},
//		Handlers: []worker.Handler{worker.Handle(charger.Handle), worker.Handle(r.Handle)},
//	})
//	go r.Run(ctx) // enqueues the passes; w.Run makes them, as it does all other jobs
//
// Nothing is ever concluded from silence: an error, a panic, a time-out, an answer about another
// reference or with values that cannot be is inconclusive, changes no record, and is asked again.
package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/money"
)

// State is what one side says of a payment, or of whatever else is reconciled.
type State string

const (
	Inconclusive State = ""             // nothing can be said: silence, garbage, an incomplete look
	NotFound     State = "not_found"    // the side does not know the reference
	Pending      State = "pending"      // on its way
	Succeeded    State = "succeeded"    // the money has moved
	Failed       State = "failed"       // refused for good: no money will move
	Refunded     State = "refunded"     // moved, and given back, in whole or in part
	ChargedBack  State = "charged_back" // moved, and taken back, in whole or in part
)

// Record is what one side says of one reference.
type Record struct {
	Reference  string `json:"reference"` // ours
	ProviderID string `json:"provider_id,omitempty"`
	State      State  `json:"state"`
	// Amount is what was taken, or is to be taken. It must be there if money has moved, and in
	// each of our own records; what could not be read must not become a zero (S104).
	Amount      money.Amount    `json:"amount,omitzero"`
	Refunded    int64           `json:"refunded_minor,omitempty"`     // given back so far
	ChargedBack int64           `json:"charged_back_minor,omitempty"` // taken back so far, in whole or in part; more than 0 if State is ChargedBack
	Charges     int             `json:"charges,omitempty"`            // how often the money was taken; more than 1 = charged twice
	At          time.Time       `json:"at,omitzero"`                  // since when it is so, or when it was made
	Detail      json.RawMessage `json:"detail,omitempty"`             // for people
}

// moved says whether money has moved, whatever became of it since.
func (r Record) moved() bool {
	return r.State == Succeeded || r.State == Refunded || r.State == ChargedBack
}

// Class is the kind of a difference. There is at most one at a time for a reference: the gravest.
type Class string

// The classes, and what is done about each by default: see DefaultPolicies.
const (
	PaidThere     Class = "paid_there_pending_here"
	PaidThereLate Class = "paid_there_failed_here" // after we gave up
	FailedThere   Class = "failed_there_pending_here"
	UnknownThere  Class = "unknown_there"  // nothing final is known there: silence, garbage, pending
	UnknownHere   Class = "unknown_here"   // our own record cannot be read
	AmountDiffers Class = "amount_differs" // or the currency does, or more came back than was taken
	ChargedTwice  Class = "charged_twice"
	ReversedThere Class = "reversed_there" // refunded or charged back there, and not yet here
	MissingHere   Class = "there_not_here"
	MissingThere  Class = "here_not_there" // also a refund or chargeback that we have and they have not
	PaidHere      Class = "paid_here_failed_there"
)

// Classes lists all of them.
var Classes = []Class{
	PaidThere, PaidThereLate, FailedThere, ReversedThere, UnknownThere, UnknownHere,
	MissingThere, MissingHere, AmountDiffers, ChargedTwice, PaidHere,
}

// Ours is the user's records. References are the user's; all methods may be called from several
// goroutines and processes at once.
type Ours interface {
	// Reference is the reference that a job works on; "" if it is none of ours. It must be the
	// one whose record says whether the work of this very job is done, because a parked job is
	// closed once both sides agree on it: a refund has a reference of its own.
	Reference(job pacht.JobInfo) string
	// Find is our record; NotFound as its State if there is none.
	Find(ctx context.Context, reference string) (Record, error)
	// Pending lists records that have been pending for longer than the given time, by
	// reference, after the one given; at most limit, and fewer only if these are the last.
	Pending(ctx context.Context, longer time.Duration, after string, limit int) ([]Record, error)
	// Reversible lists records that succeeded and may still be given back or taken back, as
	// Pending; also those of which a part was, because more may follow.
	Reversible(ctx context.Context, after string, limit int) ([]Record, error)
	// Heal brings our record to what the provider says, by the same idempotent transition that
	// webhooks and operators use, in one transaction whose last statement before the commit is
	// f.CommitTx. It is called for classes whose policy is Heal, again and again until our
	// record agrees: so one call may do one step, such as from pending to paid (PaidThere), and
	// the next the rest, such as from paid to refunded (ReversedThere). An error that wraps
	// ErrHold gives the difference to a person at once.
	Heal(ctx context.Context, f *Finding) error
}

// ErrHold is for Ours.Heal: what the provider says cannot be written down here, and no repetition
// will change that. The difference goes to a person at once, not at its policy's MaxAge.
var ErrHold = errors.New("held for a person")

// Theirs asks the provider.
type Theirs interface {
	// Lookup is the provider's record under our reference. An error, like a Record without a
	// State, is inconclusive; what is said of another reference is garbage.
	Lookup(ctx context.Context, reference string) (Record, error)
}

// Lister is a Theirs that can also list what the provider has.
type Lister interface {
	// List is a page of records that the provider made since the given time, and the cursor of
	// the next; "" = that was the last. A scan that fails on the way is inconclusive: what it
	// did not come to is looked at by the next.
	List(ctx context.Context, since time.Time, cursor string) (page []Record, next string, err error)
}
