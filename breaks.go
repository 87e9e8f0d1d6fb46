package pacht

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// BreakStatus is what is being done about a break.
type BreakStatus string

const (
	BreakWaiting BreakStatus = "waiting" // asked again at NextAt
	BreakPerson  BreakStatus = "person"  // a person must decide
	BreakHealed  BreakStatus = "healed"  // the record says now what the provider says
	BreakClosed  BreakStatus = "closed"  // gone by itself, or ended by a person
)

// BreakStatuses lists all of them, the open ones first.
var BreakStatuses = []BreakStatus{BreakWaiting, BreakPerson, BreakHealed, BreakClosed}

// Open says whether something is still to be done.
func (s BreakStatus) Open() bool { return s == BreakWaiting || s == BreakPerson }

// breakTransitions is the only table of what may follow what. What is with a person ends, or stays
// with a person: nothing takes it back to waiting, where nobody would see it. A difference that
// comes again after the end opens its break again.
var breakTransitions = map[BreakStatus]map[BreakStatus]bool{
	"":           {BreakWaiting: true, BreakPerson: true, BreakHealed: true, BreakClosed: true}, // there was none
	BreakWaiting: {BreakWaiting: true, BreakPerson: true, BreakHealed: true, BreakClosed: true},
	BreakPerson:  {BreakPerson: true, BreakHealed: true, BreakClosed: true},
	BreakHealed:  {BreakWaiting: true, BreakPerson: true, BreakHealed: true, BreakClosed: true},
	BreakClosed:  {BreakWaiting: true, BreakPerson: true, BreakHealed: true, BreakClosed: true},
}

// CanBecome says whether a decision may bring a break from one status to the other; "" is a
// break that is not there.
func (s BreakStatus) CanBecome(next BreakStatus) bool { return breakTransitions[s][next] }

// Break is one difference between our records and the provider's, under one reference. It is
// the present state of what the decisions on it say. Breaks and decisions are never deleted by
// the retention of jobs.
type Break struct {
	Reference string `json:"reference"` // ours; 1 to MaxKeyBytes bytes
	Class     string `json:"class"`     // a name, see ValidName; package reconcile defines them
	// Rev is how many decisions were made on it in all: the fence of the next one.
	Rev         int64           `json:"rev"`
	Status      BreakStatus     `json:"status"`
	Job         ID              `json:"job,omitzero"` // that it is about, if any
	AmountMinor int64           `json:"amount_minor"` // at risk, 0 or more
	Currency    string          `json:"currency,omitempty"`
	Ours        json.RawMessage `json:"ours,omitempty"`   // what we had, when it was last looked at
	Theirs      json.RawMessage `json:"theirs,omitempty"` // what the provider said
	Checks      int             `json:"checks"`           // decisions since it was opened, the last time
	FirstSeen   time.Time       `json:"first_seen"`       // when it was opened, the last time
	LastSeen    time.Time       `json:"last_seen"`        // when the last decision was made
	NextAt      time.Time       `json:"next_at,omitzero"` // of a waiting one
}

// Decision is one row of the append-only table of decisions: what was compared, what was
// seen, what was done about it, by whom.
type Decision struct {
	Reference string `json:"reference"`
	Class     string `json:"class"`
	// Rev is that of the break as the decider saw it, 0 if there was none. Of two that decide
	// on the same one wins, and the other is refused with *BreakError (R3).
	Rev         int64           `json:"rev"`
	Status      BreakStatus     `json:"status"` // what the break becomes
	Job         ID              `json:"job,omitzero"`
	AmountMinor int64           `json:"amount_minor"`
	Currency    string          `json:"currency,omitempty"` // three letters A to Z, or none
	Ours        json.RawMessage `json:"ours,omitempty"`     // stored after SafeJSON, as the next
	Theirs      json.RawMessage `json:"theirs,omitempty"`
	By          string          `json:"by"`                // who decided: an owner or a person; 1 to MaxOwnerBytes bytes
	Reason      string          `json:"reason"`            // 1 to MaxReasonBytes bytes
	Wait        time.Duration   `json:"wait_ns,omitempty"` // of a waiting one: ask again so long from now; 0 to MaxDelay
	// Since is FirstSeen of a break that this decision opens, if that is known to be earlier than
	// now: one that takes the place of another has its age. It is not kept with the decision.
	Since time.Time `json:"-"`
}

// Validate checks a decision. Ours and Theirs need no check: they are made storable.
func (d Decision) Validate() error {
	if d.Reference == "" || len(d.Reference) > MaxKeyBytes || !storable(d.Reference) {
		return &InvalidError{Field: "reference", Value: clip(d.Reference), Bound: keyBound}
	}
	if err := ValidName("class", d.Class); err != nil {
		return err
	}
	if d.Rev < 0 {
		return &InvalidError{Field: "rev of a break", Value: strconv.FormatInt(d.Rev, 10), Bound: "0 or more"}
	}
	if !BreakStatus("").CanBecome(d.Status) {
		return &InvalidError{Field: "break status", Value: clip(string(d.Status)), Bound: "waiting, person, healed or closed"}
	}
	if d.Job < 0 {
		return &InvalidError{Field: "job of a break", Value: d.Job.String(), Bound: "0 (none) or more"}
	}
	if d.AmountMinor < 0 {
		return &InvalidError{Field: "amount at risk", Value: strconv.FormatInt(d.AmountMinor, 10), Bound: "0 or more"}
	}
	if !validCurrency(d.Currency) {
		return &InvalidError{Field: "currency", Value: clip(d.Currency), Bound: "three letters A to Z, or none"}
	}
	if d.Wait < 0 || d.Wait > MaxDelay || d.Wait > 0 && d.Status != BreakWaiting {
		return &InvalidError{Field: "wait", Value: d.Wait.String(), Bound: "0 to 8760h, and only for a waiting break"}
	}
	return Act{By: d.By, Reason: d.Reason}.Validate()
}

func validCurrency(code string) bool {
	ok := code == "" || len(code) == 3
	for i := 0; ok && i < len(code); i++ {
		ok = code[i] >= 'A' && code[i] <= 'Z'
	}
	return ok
}

// DecisionEntry is a decision as it is stored.
type DecisionEntry struct {
	Decision
	At time.Time `json:"at"`
}

// BreakCursor names one break in lists, which are ordered by reference, then class, byte for byte.
type BreakCursor struct {
	Reference string
	Class     string
}

// BreakFilter selects breaks. The zero value lists the open ones.
type BreakFilter struct {
	Status    BreakStatus // "" = any open one
	Ended     bool        // with Status "": those that have ended too
	Class     string      // "" = any
	Reference string      // "" = any
	Due       bool        // only waiting ones whose NextAt has come
	After     BreakCursor // only those after this one: the next page
	Limit     int         // 1 to 1000, 0 = 50
}

// Validate checks a filter, and fills in the limit.
func (f *BreakFilter) Validate() error {
	if f.Limit == 0 {
		f.Limit = 50
	}
	if f.Limit < 1 || f.Limit > 1000 {
		return &InvalidError{Field: "limit", Value: strconv.Itoa(f.Limit), Bound: "1 to 1000"}
	}
	if f.Status != "" && !BreakStatus("").CanBecome(f.Status) {
		return &InvalidError{Field: "break status", Value: clip(string(f.Status)), Bound: "waiting, person, healed or closed"}
	}
	for _, text := range []string{f.Class, f.Reference, f.After.Reference, f.After.Class} {
		if len(text) > MaxKeyBytes || !storable(text) {
			return &InvalidError{Field: "class or reference", Value: clip(text), Bound: "at most 512 bytes of UTF-8 without NUL"}
		}
	}
	return nil
}

// Of picks from all breaks of the filter's reference, for stores; now is the database's clock,
// and counts only with Due.
func (f BreakFilter) Of(all []Break, now time.Time) (some []Break) {
	for _, b := range all {
		status := b.Status == f.Status || f.Status == "" && (f.Ended || b.Status.Open())
		due := !f.Due || b.Status == BreakWaiting && !b.NextAt.After(now)
		if status && due && (f.Class == "" || b.Class == f.Class) && len(some) < f.Limit &&
			(f.After.Reference < b.Reference || f.After.Reference == b.Reference && f.After.Class < b.Class) {
			some = append(some, b)
		}
	}
	return some
}

// BreakCount sums up breaks of one class, status and currency.
type BreakCount struct {
	Class       string      `json:"class"`
	Status      BreakStatus `json:"status"`
	Currency    string      `json:"currency,omitempty"`
	Breaks      int64       `json:"breaks"`
	AmountMinor int64       `json:"amount_minor"`            // the largest int64 if it is more than that
	Capped      bool        `json:"amount_capped,omitempty"` // it is no sum: the sum is that much or more
	Oldest      time.Time   `json:"oldest"`                  // first seen
}

// BreakLog keeps differences between our records and the provider's.
type BreakLog interface {
	// Decide appends a decision and brings its break to the state that it says, in one
	// transaction: a new break, or the one of that reference and class. It answers the break.
	// A break that is not as d.Rev says, or may not become d.Status, is left as it is, nothing
	// is written, and the error is *BreakError.
	Decide(ctx context.Context, d Decision) (Break, error)
	// Breaks lists breaks in order of reference, then class.
	Breaks(ctx context.Context, f BreakFilter) ([]Break, error)
	// Decisions lists all decisions on one reference, oldest first.
	Decisions(ctx context.Context, reference string) ([]DecisionEntry, error)
	// BreakCounts sums up the open breaks, and those that were healed since the given time, by
	// class, status and currency, in this order.
	BreakCounts(ctx context.Context, healedSince time.Time) ([]BreakCount, error)
}

// BreakError refuses a decision: the break stands otherwise than its decider saw it, or is with
// a person and may not go back to waiting.
type BreakError struct {
	Break Break       // as it stands; of a break that is not there reference and class alone
	Rev   int64       // as the decider saw it
	Asked BreakStatus // what it was to become
}

func (e *BreakError) Error() string {
	text := "break " + e.Break.Class + " of " + clip(e.Break.Reference) + " cannot become " + string(e.Asked)
	if e.Break.Rev != e.Rev {
		return text + ": it has rev " + strconv.FormatInt(e.Break.Rev, 10) + ", not " + strconv.FormatInt(e.Rev, 10) +
			" as the decision says; look again"
	}
	return text + ": it is " + string(e.Break.Status)
}
