package pacht

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What callers branch on with errors.Is.
var (
	// ErrLeaseLost: the lease was closed or taken by somebody else, or its time is over.
	// Nothing was written. The *LeaseLostError behind it says who holds the job now.
	ErrLeaseLost = errors.New("lease lost")
	// ErrAlreadySettled: this very lease was closed before, with this outcome. CompleteTx
	// returns it, and the transaction is broken: the business write of the first time stands.
	ErrAlreadySettled = errors.New("lease already settled")
	// ErrBusy: another session holds the row locked. Nothing was written; ask again.
	ErrBusy = errors.New("row is locked by another session")
	// ErrKeyConflict: the idempotency key stands for a job with other content.
	ErrKeyConflict = errors.New("idempotency key already used for other content")
	// ErrUnknown: the connection broke after the request was sent and before its answer
	// came; it may have been carried out or not.
	ErrUnknown = errors.New("outcome unknown: the connection broke before the answer came")
	// ErrSerialization: the caller's transaction must be repeated as a whole.
	ErrSerialization = errors.New("serialization failure: repeat the whole transaction")
	// ErrNotFound: there is no such job.
	ErrNotFound = errors.New("no such job")
	// ErrWrongStatus: the act does not apply to a job in this status.
	ErrWrongStatus = errors.New("not possible in this status")
	// ErrSchema: the tables are missing, older or newer than this program.
	ErrSchema = errors.New("schema does not fit")
	// ErrClosed: the store was closed. A worker that meets it stops.
	ErrClosed = errors.New("the store is closed")
	// ErrInTransaction: a call that needs the file's write lock was made inside an open
	// transaction on the same SQLite file, by the same process, and would wait for itself.
	ErrInTransaction = errors.New("called inside an open transaction on the same file")
)

// ErrEffectOpen: an effect that this holder has called is without an answer. CompleteTx returns it:
// nothing may be completed before the outcome is known (R10).
var ErrEffectOpen = errors.New("an effect is without an answer")

// Why a handler's context was cancelled: context.Cause(ctx) is, or wraps, one of these or
// ErrLeaseLost.
var (
	ErrStopping        = errors.New("worker is stopping")
	ErrTimeout         = errors.New("handler timeout")
	ErrCancelRequested = errors.New("cancel requested")
)

// ErrNotCommitted: the handler called CompleteTx and returned nil, but its transaction was
// never committed. The attempt counts as failed.
var ErrNotCommitted = errors.New("CompleteTx was called but its transaction was not committed")

// InvalidError is a refusal at the edge: which field, which value, which bound.
type InvalidError struct {
	Field string
	Value string // shortened; never args
	Bound string // what is allowed
}

func (e *InvalidError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: want %s", e.Field, e.Bound)
	}
	return fmt.Sprintf("%s: %s is not allowed, want %s", e.Field, e.Value, e.Bound)
}

// LeaseLostError says what became of the lease. errors.Is(err, ErrLeaseLost) holds.
type LeaseLostError struct {
	Ref    Ref
	Status Status    // the job's status now; "" if the job is gone
	Token  Token     // the job's token now
	Owner  string    // who holds it now, or who closed our lease
	Until  time.Time // until when, if somebody holds it
	// Outcome is how our own lease was closed, if the ledger says so.
	Outcome Outcome
}

func (e *LeaseLostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lease lost: %s", e.Ref)
	if e.Status == "" {
		b.WriteString(": the job is gone")
		return b.String()
	}
	if e.Outcome != "" {
		fmt.Fprintf(&b, " was closed as %s", e.Outcome)
	}
	fmt.Fprintf(&b, "; the job is %s", e.Status)
	if e.Status == Processing {
		fmt.Fprintf(&b, ", held by %s with token %d until %s", e.Owner, e.Token, e.Until.UTC().Format(time.RFC3339Nano))
	}
	return b.String()
}

// Is makes errors.Is(err, ErrLeaseLost) true.
func (e *LeaseLostError) Is(target error) bool { return target == ErrLeaseLost }

// KeyConflictError says which job the key stands for. errors.Is(err, ErrKeyConflict) holds.
type KeyConflictError struct {
	Key string
	Job ID // the job that the key stands for
}

func (e *KeyConflictError) Error() string {
	return fmt.Sprintf("idempotency key %s already stands for job %d with another kind or other args", clip(e.Key), e.Job)
}

// Is makes errors.Is(err, ErrKeyConflict) true.
func (e *KeyConflictError) Is(target error) bool { return target == ErrKeyConflict }

// StatusError refuses an act. errors.Is(err, ErrWrongStatus) holds.
type StatusError struct {
	Job    ID
	Status Status
	Act    string // what was asked for: "retry", "cancel", "release", "resolve"
	Allow  string // from which statuses it is possible, and what to do instead
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("cannot %s job %d: it is %s; %s", e.Act, e.Job, e.Status, e.Allow)
}

// Is makes errors.Is(err, ErrWrongStatus) true.
func (e *StatusError) Is(target error) bool { return target == ErrWrongStatus }

// SchemaError refuses to work on tables that do not fit. errors.Is(err, ErrSchema) holds.
type SchemaError struct {
	Found  int // version of the tables; 0 = none
	Wanted int // version this program was built for
	Detail string
}

func (e *SchemaError) Error() string {
	switch {
	case e.Detail != "":
		return "schema: " + e.Detail
	case e.Found == 0:
		return `schema: no tables of pacht in this database: run "pacht migrate up"`
	case e.Found < e.Wanted:
		return fmt.Sprintf(`schema: the database has version %d, this program needs %d: run "pacht migrate up"`, e.Found, e.Wanted)
	}
	return fmt.Sprintf("schema: the database has version %d, this program knows only up to %d: use a newer program", e.Found, e.Wanted)
}

// Is makes errors.Is(err, ErrSchema) true.
func (e *SchemaError) Is(target error) bool { return target == ErrSchema }
