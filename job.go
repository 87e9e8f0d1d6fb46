package pacht

import (
	"encoding/json"
	"time"
)

// Args is what a job is to do: a JSON-encodable value that knows its kind.
type Args interface {
	// Kind names the handler, for instance "charge". Never change it once jobs exist.
	Kind() string
}

// ArgsWithOptions is implemented by args whose kind has options of its own. An option given
// at the enqueue goes before them; they go before the queue's, and those before the default.
type ArgsWithOptions interface {
	Args
	EnqueueOptions() []Option
}

// CrashPolicy says what an expired lease becomes (R9).
type CrashPolicy string

const (
	CrashRetry CrashPolicy = "retry" // back to Pending after CrashDelay
	CrashHold  CrashPolicy = "hold"  // to Stuck, for the reconciler or a person
)

// Defaults of a job, and the bounds within which they may be set.
const (
	DefaultQueue       = "default"
	DefaultPriority    = 3
	DefaultMaxAttempts = 25
	DefaultMaxCrashes  = 3
	DefaultTTL         = time.Minute
	DefaultCrashPolicy = CrashRetry
	DefaultKeyLife     = 30 * 24 * time.Hour

	MinPriority, MaxPriority = 1, 4 // 1 is first; strict: a lower one waits
	MaxMaxAttempts           = 30000
	MaxMaxCrashes            = 1000
	MinTTL, MaxTTL           = 100 * time.Millisecond, 24 * time.Hour
	MaxDelay                 = 365 * 24 * time.Hour      // of a retry, a snooze, a release
	Horizon                  = 10 * 365 * 24 * time.Hour // how far ahead a job may be scheduled
	MaxKeyLife               = 10 * 365 * 24 * time.Hour

	MaxBatch       = 10000 // rows in one call of Claim, Renew, Settle; Enqueue takes any number
	MaxNameBytes   = 128   // kind, queue, step
	MaxKeyBytes    = 512   // idempotency key, and its scope
	MaxOwnerBytes  = 256
	MaxErrorBytes  = 16 << 10 // of a stored error; longer ones are cut
	MaxReasonBytes = 1000     // of the reason of an act by hand
	MaxArgsBytes   = 1 << 20  // default of Limits.ArgsBytes; also bounds output and step data
	MaxJSONDepth   = 1000     // default of Limits.JSONDepth
)

// NewJob is a job to enqueue. Make it with New; the zero value of a field means "not said",
// and is filled in by the queue's settings, else the defaults, when it is stored.
type NewJob struct {
	Kind     string
	Args     json.RawMessage // required, one JSON document, stored byte for byte
	Metadata json.RawMessage // a JSON object, or empty
	Queue    string          // "" = DefaultQueue
	Priority int             // MinPriority to MaxPriority, 0 = DefaultPriority
	// RunAt is the earliest time to run, up to Horizon ahead; zero or past means now, by the
	// database's clock. At most one of RunAt and Delay is set.
	RunAt       time.Time
	Delay       time.Duration // like RunAt, counted from the database's now
	MaxAttempts int           // 1 to MaxMaxAttempts: executions in all, not retries
	MaxCrashes  int           // 1 to MaxMaxCrashes: expiries in a row until the job is set aside
	TTL         time.Duration // MinTTL to MaxTTL, in whole milliseconds
	CrashPolicy CrashPolicy
	// Key makes the enqueue idempotent (R11): 1 to MaxKeyBytes bytes, compared byte for byte
	// within Scope. It stands for KeyLife (0 = DefaultKeyLife), and as long as the job is
	// unfinished.
	Key, Scope string
	KeyLife    time.Duration

	err error // what New found wrong; reported by Validate
}

// Enqueued answers one NewJob.
type Enqueued struct {
	ID        ID    // set if Err is nil
	Duplicate bool  // the key stood for a job with the same content: ID is that job
	Err       error // *InvalidError, *KeyConflictError, or nil. Nothing was stored then
}

// JobInfo is a job as it stands in the database: its facts, its status, its lease.
type JobInfo struct {
	ID       ID              `json:"id"`
	Kind     string          `json:"kind"`
	Queue    string          `json:"queue"`
	Priority int             `json:"priority"`
	Args     json.RawMessage `json:"args,omitempty"`     // not loaded by lists
	Metadata json.RawMessage `json:"metadata,omitempty"` // likewise

	Status Status `json:"status"`
	// Attempt is how many attempts were counted so far (R5); of a finished job, the number of
	// its last one.
	Attempt     int           `json:"attempt"`
	MaxAttempts int           `json:"max_attempts"`
	Crashes     int           `json:"crashes"` // expiries in a row
	MaxCrashes  int           `json:"max_crashes"`
	Token       Token         `json:"token"`
	TTL         time.Duration `json:"ttl_ns"`
	CrashPolicy CrashPolicy   `json:"crash_policy"`

	CreatedAt       time.Time `json:"created_at"`
	RunAt           time.Time `json:"run_at,omitzero"` // zero unless Pending or Processing
	LeaseOwner      string    `json:"lease_owner,omitempty"`
	ClaimedAt       time.Time `json:"claimed_at,omitzero"`
	LeaseUntil      time.Time `json:"lease_until,omitzero"`
	CancelRequested bool      `json:"cancel_requested,omitempty"`
	FinishedAt      time.Time `json:"finished_at,omitzero"` // when it became Completed, Dead or Cancelled
}

// Ref names the lease that this row speaks of.
func (j JobInfo) Ref() Ref { return Ref{Job: j.ID, Token: j.Token} }

// Facts is what the next status is decided from.
func (j JobInfo) Facts() Facts {
	return Facts{
		Attempt: j.Attempt, MaxAttempts: j.MaxAttempts,
		Crashes: j.Crashes, MaxCrashes: j.MaxCrashes,
		TTL: j.TTL, CrashPolicy: j.CrashPolicy, CancelRequested: j.CancelRequested,
	}
}
