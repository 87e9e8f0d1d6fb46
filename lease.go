package pacht

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// The rules of the lease. Everything else in this module serves them; docs/lease.md
// lists each beside the tests that defend it.
//
//	R1  One owner. A job has at most one open lease, and claiming is one atomic statement.
//	R2  The token only grows, and only by taking the lease.
//	R3  Every write after the claim is fenced by (job, token, status). Zero rows is an
//	    answer, ErrLeaseLost, and it reaches the caller.
//	R4  A lease is closed once: the ledger has one row per (job, token). A verb whose answer
//	    was lost can be repeated; CompleteTx is never answered from the ledger.
//	R5  The attempt is counted at the claim and kept. Release and snooze give it back.
//	R6  Only lease_until decides expiry, written by the database's clock from the job's own TTL.
//	R7  Expired means expired: no renewal afterwards. A settle by the last holder is still
//	    accepted, marked late, while nobody closed or took the lease.
//	R8  The holder stops itself before lease_until.
//	R9  A crash is not a failure. It has its own policy, its own count and its own cap.
//	R10 Unknown is an outcome, and its next status is Stuck. Nothing unknown is retried blindly.
//	R11 Enqueue is idempotent per key and content.
//	R12 One bad row never stops the others.

// ID is a job's number, given by the database and never reused. In JSON it is a string,
// because JavaScript's numbers end at 2^53.
type ID int64

func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalJSON writes the id as a string of decimal digits.
func (id ID) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, id.String()), nil }

// UnmarshalJSON reads a string of decimal digits, or a JSON integer.
func (id *ID) UnmarshalJSON(b []byte) error {
	n, err := unmarshalInt(b)
	if err != nil {
		return fmt.Errorf("job id %s: %w", b, err)
	}
	*id = ID(n)
	return nil
}

// ParseID reads a job id as people type it: decimal digits, greater than zero.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n == 0 {
		return 0, &InvalidError{Field: "job id", Value: clip(s), Bound: "a whole number greater than zero"}
	}
	return ID(n), nil
}

// Token is the fence: a number on the lease that grows by one each time the lease is
// taken and never goes back (R2). In JSON it is a string.
type Token int64

func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// MarshalJSON writes the token as a string of decimal digits.
func (t Token) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, t.String()), nil }

// UnmarshalJSON reads a string of decimal digits, or a JSON integer.
func (t *Token) UnmarshalJSON(b []byte) error {
	n, err := unmarshalInt(b)
	if err != nil {
		return fmt.Errorf("token %s: %w", b, err)
	}
	*t = Token(n)
	return nil
}

// unmarshalInt reads an integer as JSON spells it, in quotes or not: no plus, no leading zero.
func unmarshalInt(b []byte) (int64, error) {
	if len(b) >= 2 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil && strconv.FormatInt(n, 10) != string(b) {
		return 0, &InvalidError{Field: "integer", Value: clip(string(b)), Bound: "decimal digits, without a plus or zeros before them"}
	}
	return n, err
}

// Ref names one lease of one job: what every write after the claim carries (R3).
type Ref struct {
	Job   ID    `json:"job"`
	Token Token `json:"token"`
}

func (r Ref) String() string {
	b := append(make([]byte, 0, 64), "job "...)
	b = strconv.AppendInt(b, int64(r.Job), 10)
	b = append(b, ", token "...)
	return string(strconv.AppendInt(b, int64(r.Token), 10))
}

// Outcome is how a lease ended, as the ledger (table attempts) spells it.
type Outcome string

const (
	OutcomeCompleted Outcome = "Completed" // the handler did the work
	OutcomeFailed    Outcome = "Failed"    // the handler reported an error
	OutcomeExpired   Outcome = "Expired"   // lease_until passed and nobody had closed it
	OutcomeReleased  Outcome = "Released"  // given back unused, or taken away by an operator; attempt given back
	OutcomeSnoozed   Outcome = "Snoozed"   // put off by the handler; attempt given back
	OutcomeCancelled Outcome = "Cancelled" // ended for good by the handler or an operator
	OutcomeUnknown   Outcome = "Unknown"   // an effect may or may not have happened (R10)
	OutcomeResolved  Outcome = "Resolved"  // taken and closed by an operator or the reconciler
)

// Settlement is what a holder says at the end of its lease. The next status is decided by
// the database from the locked row (see Next); the delay is decided here, because chance
// belongs to Go, and is added by the database to its own now.
type Settlement struct {
	Ref     Ref
	Outcome Outcome // Completed, Failed, Released, Snoozed, Cancelled or Unknown
	// Delay is how long the job waits if it goes back to Pending, 0 to MaxDelay. A released
	// job with no delay keeps its run_at, and so its place in the queue.
	Delay time.Duration
	// Permanent makes a failure Dead at once, whatever attempts are left.
	Permanent bool
	// GiveBack returns the attempt of a failure: a handler that was stopped from outside has
	// not used its try (R10). It cannot die of the attempt cap. Released and Snoozed always
	// give back; for other outcomes it means nothing.
	GiveBack bool
	Error    string          // stored after SafeText(Error, MaxErrorBytes)
	Output   json.RawMessage // JSON or empty; stored after SafeJSON
}

// Settled is the answer to one Settlement.
type Settled struct {
	Ref    Ref
	Status Status // what the job is from now on
	// Late says that the lease was past lease_until when it was settled (R7).
	Late bool
	// Repeated says that the ledger already had this very outcome for this lease: the
	// settlement was made before and only its answer was lost (R4).
	Repeated bool
	// Err is nil, or *LeaseLostError (ErrLeaseLost), or ErrBusy when another session holds the
	// row locked: nothing was written then, ask again. *InvalidError if it made no sense.
	Err error
}

// RenewState is the answer to one renewal.
type RenewState int

const (
	RenewLost     RenewState = iota // not ours any more, or past lease_until: stop working
	RenewExtended                   // extended to the database's now plus the job's TTL
	RenewBusy                       // the row is locked by somebody: neither extended nor lost, ask again
)

func (s RenewState) String() string {
	switch s {
	case RenewExtended:
		return "extended"
	case RenewBusy:
		return "busy"
	}
	return "lost"
}

// Renewed is the answer to the renewal of one lease.
type Renewed struct {
	Ref             Ref
	State           RenewState
	LeaseUntil      time.Time // by the database's clock; set if State is RenewExtended
	CancelRequested bool      // somebody asked for this job to be cancelled
}

// Renewals answers one batch of renewals, row by row and in the order asked.
type Renewals struct {
	Now  time.Time // the database's clock when it wrote them
	Rows []Renewed
}

// Claims answers one claim.
type Claims struct {
	Now  time.Time // the database's clock when it wrote them
	Jobs []JobInfo // with args, status Processing; never more than asked for
}

// ClaimRequest asks for due jobs of one queue.
type ClaimRequest struct {
	Owner string   // who will hold them; 1 to MaxOwnerBytes bytes
	Queue string   // exactly one queue
	Kinds []string // only these kinds; at least one. Others are left alone
	Limit int      // 1 to MaxBatch
	// Room, if set, is asked for Limit anew by a claim that has waited for its turn (PostgreSQL):
	// meanwhile there may have come to be more room, or less. Less than 1 changes nothing, more than
	// MaxBatch counts as that. It is called before Claim returns, by the goroutine that called it, and
	// must not block: others wait for their turns.
	Room func() int
}

// Attempt is a closed lease: one row of the ledger.
type Attempt struct {
	Job        ID              `json:"job"`
	Token      Token           `json:"token"`
	Attempt    int             `json:"attempt"`
	Owner      string          `json:"owner"` // the worker that held it, or the actor who took and closed it
	ClaimedAt  time.Time       `json:"claimed_at"`
	EndedAt    time.Time       `json:"ended_at"`
	Late       bool            `json:"late"` // settled after lease_until, before anybody else took or closed it
	Outcome    Outcome         `json:"outcome"`
	NextStatus Status          `json:"next_status"`
	NextRunAt  time.Time       `json:"next_run_at,omitzero"` // set if NextStatus is Pending
	Error      string          `json:"error,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
}

// Step is one thing a job has reached: durable, fenced by the token of the attempt that
// wrote it, read by the next attempt and by plain SQL.
type Step struct {
	Token Token           `json:"token"`
	Name  string          `json:"name"` // a name as queues have, see ValidName
	Data  json.RawMessage `json:"data,omitempty"`
	At    time.Time       `json:"at"`
}

// Report is an outcome that came after its lease had been closed by somebody else. It
// changed nothing and is kept for a person or the reconciler to see (R7).
type Report struct {
	Job     ID        `json:"job"`
	Token   Token     `json:"token"`
	At      time.Time `json:"at"`
	Owner   string    `json:"owner"`
	Outcome Outcome   `json:"outcome"`
	Error   string    `json:"error,omitempty"`
}
