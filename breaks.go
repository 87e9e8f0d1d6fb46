package pacht

import (
	"context"
	"encoding/json"
	"time"
)

// BreakStatus is what is being done about a break.
type BreakStatus string

const (
	BreakWaiting BreakStatus = "waiting" // asked again at NextAt
	BreakPerson  BreakStatus = "person"  // a person must decide; nothing more is done by itself
	BreakHealed  BreakStatus = "healed"  // the record says now what the provider says
	BreakClosed  BreakStatus = "closed"  // gone by itself, or ended by a person
)

// Open says whether something is still to be done.
func (s BreakStatus) Open() bool { return s == BreakWaiting || s == BreakPerson }

// Break is one difference between our records and the provider's, under one reference. It is
// the present state of what the decisions on it say.
type Break struct {
	Reference   string          `json:"reference"` // ours; 1 to MaxKeyBytes bytes
	Class       string          `json:"class"`     // a name, see ValidName; package reconcile defines them
	Status      BreakStatus     `json:"status"`
	Job         ID              `json:"job,omitzero"` // that it is about, if any
	AmountMinor int64           `json:"amount_minor"` // at risk, 0 or more
	Currency    string          `json:"currency,omitempty"`
	Ours        json.RawMessage `json:"ours,omitempty"`   // what we had, when it was last looked at
	Theirs      json.RawMessage `json:"theirs,omitempty"` // what the provider said
	Checks      int             `json:"checks"`           // decisions so far
	FirstSeen   time.Time       `json:"first_seen"`
	LastSeen    time.Time       `json:"last_seen"`
	NextAt      time.Time       `json:"next_at,omitzero"` // of a waiting one
}

// Decision is one row of the append-only table of decisions: what was compared, what was
// seen, what was done about it, by whom.
type Decision struct {
	Reference   string
	Class       string
	Status      BreakStatus // what the break becomes
	Job         ID
	AmountMinor int64
	Currency    string
	Ours        json.RawMessage
	Theirs      json.RawMessage
	By          string        // who decided: an owner or a person; 1 to MaxOwnerBytes bytes
	Reason      string        // 1 to MaxReasonBytes bytes
	Wait        time.Duration // of a waiting one: ask again so long from now; 0 to MaxDelay
}

// DecisionEntry is a decision as it is stored.
type DecisionEntry struct {
	Decision
	At time.Time
}

// BreakFilter selects breaks. The zero value lists the open ones.
type BreakFilter struct {
	Status    BreakStatus // "" = any open one
	Class     string      // "" = any
	Reference string      // "" = any
	Due       bool        // only waiting ones whose NextAt has come
	After     string      // only references after this one: the next page
	Limit     int         // 1 to 1000, 0 = 50
}

// BreakCount sums up breaks of one class and status.
type BreakCount struct {
	Class       string      `json:"class"`
	Status      BreakStatus `json:"status"`
	Currency    string      `json:"currency,omitempty"`
	Breaks      int64       `json:"breaks"`
	AmountMinor int64       `json:"amount_minor"`
	Oldest      time.Time   `json:"oldest"` // first seen
}

// BreakLog keeps differences between our records and the provider's.
type BreakLog interface {
	// Decide appends a decision and brings its break to the state that it says, in one
	// transaction: a new break, or the one of that reference and class. It answers the break.
	Decide(ctx context.Context, d Decision) (Break, error)
	// Breaks lists breaks in order of reference, then class.
	Breaks(ctx context.Context, f BreakFilter) ([]Break, error)
	// Decisions lists all decisions on one reference, oldest first.
	Decisions(ctx context.Context, reference string) ([]DecisionEntry, error)
	// BreakCounts sums up the open breaks, and those that were healed since the given time.
	BreakCounts(ctx context.Context, healedSince time.Time) ([]BreakCount, error)
}
