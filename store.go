package pacht

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Store keeps jobs, leases and the ledger in a database. There are two, in the packages
// postgres and sqlite, and one conformance suite, storetest.Run, which is the test of every
// promise below. All methods may be called from many goroutines.
//
// Unless a method says otherwise: what it reports as done is committed and durable when it
// returns; each call is one transaction; times are by the database's clock; serialization
// failures, deadlocks and busy files are retried inside, bounded, with jitter; an error
// means that nothing was written, except where it is ErrUnknown or a broken connection, and
// then the verb may be repeated, as R4 and R11 allow.
type Store interface {
	Enqueuer
	Leaser
	Waker
	Expirer
	Sweeper
	Reader
	Operator
	BreakLog
	EffectLog
	Checker

	// Close ends the connections that the store opened itself. It does not close a pool
	// that was handed in.
	Close() error
}

// Enqueuer takes in jobs.
type Enqueuer interface {
	// Enqueue stores jobs in one transaction and answers row by row, in order: a refused one
	// (Enqueued.Err) does not stop the others. Any number may be given. If the answer of the
	// commit was lost and every job carries a key, the call is repeated inside, else it
	// returns ErrUnknown and is never repeated inside (R11).
	Enqueue(ctx context.Context, jobs []NewJob) ([]Enqueued, error)
	// EnqueueInTurn is Enqueue of one batch in a row of them. A store that gains nothing from beginning
	// a batch before the last is committed takes it for Enqueue.
	EnqueueInTurn(ctx context.Context, jobs []NewJob, turn *Turn) ([]Enqueued, error)
	// BatchSize is how many jobs at most EnqueueMany stores in one transaction: many where each
	// transaction has its price, few where all others wait for it.
	BatchSize() int
}

// Tx is a caller's open transaction. What belongs in a transaction takes a Tx, and a Store
// is none. Nothing is durable until the caller commits.
type Tx interface {
	// EnqueueTx stores jobs in the transaction, with answers as Enqueue gives them. A refused
	// job leaves the transaction usable. Notices to workers go out at the commit.
	EnqueueTx(ctx context.Context, jobs []NewJob) ([]Enqueued, error)
	// SettleTx closes the lease in the transaction, or returns an error, ErrLeaseLost or
	// ErrAlreadySettled among others, and breaks the transaction: no later commit of it can
	// succeed. It is never answered from the ledger (R4). It waits for a row that somebody else holds
	// locked. It should be the last statement before the commit: from here on the row is
	// locked, and PostgreSQL ends the session if it then idles past lease_until.
	SettleTx(ctx context.Context, s Settlement) error
	// SetStepTx is SetStep in the transaction. If it returns an error, ErrLeaseLost or any
	// other, it has broken the transaction.
	SetStepTx(ctx context.Context, ref Ref, name string, data json.RawMessage) error
	// DecideTx is Decide in the transaction: the record and the decision on it commit together.
	// If it returns an error, *BreakError or any other, it has broken the transaction.
	DecideTx(ctx context.Context, d Decision) error
	// ResolveTx is Operator.Resolve in the transaction: it takes and closes a vacant or parked
	// lease, fenced by the token it had. Of two that try, one waits for the other's commit, and
	// one wins. If it returns an error, it has broken the transaction. Like SettleTx it should be
	// the last statement before the commit; on PostgreSQL the transaction may then idle for
	// DefaultTTL at most.
	ResolveTx(ctx context.Context, ref Ref, res Resolution, act Act) error
}

// Leaser is the life of a lease, from the claim to the settle. It is all that a worker needs.
type Leaser interface {
	// Claim takes due Pending jobs of one queue and some kinds, best priority first, then
	// run_at, then id: never more than asked, in one atomic statement (R1, R5). Fewer than
	// asked do not mean an empty queue: rows that others hold locked are passed over. If the
	// answer was lost, ask HeldBy.
	Claim(ctx context.Context, req ClaimRequest) (Claims, error)
	// ClaimID takes one job by its id: a due Pending one, or an expired lease, which is
	// closed and taken in the same statement, if its policy is retry, both caps have room
	// and no cancel is requested. Otherwise it takes nothing and says false: no error.
	ClaimID(ctx context.Context, owner string, id ID) (job JobInfo, ok bool, err error)
	// HeldBy lists what this owner holds now, with args: what to ask after a claim whose
	// answer was lost. That is all there will be: it waits for claims of the owner that are
	// under way, and one of this store's that went unanswered and arrives later takes nothing.
	// It reads the table of unfinished jobs from end to end.
	HeldBy(ctx context.Context, owner string) (Claims, error)
	// Renew extends leases to the database's now plus each job's own TTL, row by row: lost
	// if the token is not current or lease_until has passed (R7), busy if the row is locked.
	// It has a connection of its own, so that handlers which hold the whole pool cannot
	// starve it. Never changes the token.
	Renew(ctx context.Context, refs []Ref) (Renewals, error)
	// Settle closes leases, row by row: history is written from the locked row in the same
	// statement. A repeat of a settlement is answered as it was the first time. One that
	// comes after the lease was closed by somebody else gets ErrLeaseLost and is kept in the
	// table of reports.
	Settle(ctx context.Context, batch []Settlement) ([]Settled, error)
	// SetStep records what the job has reached. Fenced as a settle is: *LeaseLostError if the
	// lease was closed or taken.
	SetStep(ctx context.Context, ref Ref, name string, data json.RawMessage) error
	// Steps lists what a job has reached, oldest first.
	Steps(ctx context.Context, id ID) ([]Step, error)
	// Beat says that a worker process lives. Leases do not depend on it (R6): it is for
	// people, and a missed beat brings the watcher's next look forward.
	Beat(ctx context.Context, w WorkerInfo) error
	// Leave says that a worker process ended in order.
	Leave(ctx context.Context, owner string) error
}

// WorkerInfo is one run of one worker process.
type WorkerInfo struct {
	Owner     string        `json:"owner"`
	Host      string        `json:"host"`
	PID       int           `json:"pid"`
	Queues    []string      `json:"queues"`
	Kinds     []string      `json:"kinds"`
	BeatEvery time.Duration `json:"beat_every_ns"`
	// LastUntil is the latest lease_until that it holds, as far as it knows.
	LastUntil time.Time `json:"last_until,omitzero"`
	// FirstUntil is the earliest. A beat brings the watcher's next pass forward to it, so that
	// a short lease is not left until the period is over; it is not kept.
	FirstUntil time.Time `json:"-"`
	StartedAt  time.Time `json:"started_at,omitzero"` // by the database's clock, as the next two
	BeatAt     time.Time `json:"beat_at,omitzero"`
	StoppedAt  time.Time `json:"stopped_at,omitzero"` // zero while it runs, or if it crashed
}

// Missed says whether the worker neither ended in order nor beat for three periods.
func (w WorkerInfo) Missed(now time.Time) bool {
	return w.StoppedAt.IsZero() && now.Sub(w.BeatAt) > 3*w.BeatEvery
}

// Expirer closes leases that are past their time: the watcher's part.
type Expirer interface {
	// Expire makes one pass, if one is due. Turn and pass are one transaction that also
	// stamps the time of the pass, so that any number of watchers make one pass at a time
	// and a pass that dies leaves no trace. A pass is due at the earliest lease_until that
	// the last one found, or a beat told of, but not before 20 times what that took, or Period if
	// that is less; every Period, or 100 times what the last one took, up to five minutes, if that is
	// longer; and once when a worker has missed its beats, and at the last lease_until it told of.
	Expire(ctx context.Context, req ExpireRequest) (Pass, error)
}

// ExpireRequest asks for one pass.
type ExpireRequest struct {
	By     string        // who looks; shown by doctor
	Limit  int           // most leases to close in one pass, 1 to MaxBatch
	Period time.Duration // the next pass is due after this time, unless passes take long; 10ms to 1h
	Force  bool          // look whether a pass is due or not; also the following pages
	After  ID            // look only at jobs after this one: the next page, see Pass.More
}

// Validate checks a request for a pass.
func (r ExpireRequest) Validate() error {
	if err := ValidOwner(r.By); err != nil {
		return err
	}
	if r.Limit < 1 || r.Limit > MaxBatch {
		return &InvalidError{Field: "limit", Value: strconv.Itoa(r.Limit), Bound: "1 to 10000"}
	}
	if r.Period < 10*time.Millisecond || r.Period > time.Hour {
		return &InvalidError{Field: "watch period", Value: r.Period.String(), Bound: "10ms to 1h"}
	}
	return nil
}

// Pass is what one pass of the watcher did.
type Pass struct {
	Turn    bool      // false: no pass was due, or another watcher is at it; nothing was looked at
	Now     time.Time // the database's clock
	Expired []Expiry  // what was closed, in job order
	Locked  []Ref     // expired, but locked by another session: left for the next pass
	// More is not 0 if the limit was reached: go on with Force and After: More.
	More ID
	// NextIn is when the next pass is due, counted from now.
	NextIn time.Duration
}

// Expiry is one lease that a pass closed.
type Expiry struct {
	Ref        Ref       `json:"ref"`
	Kind       string    `json:"kind"`
	Queue      string    `json:"queue"`
	Owner      string    `json:"owner"`
	LeaseUntil time.Time `json:"lease_until"`
	Next       Status    `json:"next_status"`
	Crashes    int       `json:"crashes"`
}

// Act is who does something by hand, and why. Both are stored in the table audit.
type Act struct {
	By     string `json:"by"`     // 1 to MaxOwnerBytes bytes
	Reason string `json:"reason"` // 1 to MaxReasonBytes bytes
}

// Validate checks an act.
func (a Act) Validate() error {
	if a.By == "" || len(a.By) > MaxOwnerBytes || !storable(a.By) {
		return &InvalidError{Field: "by", Value: clip(a.By), Bound: "your name, 1 to 256 bytes of UTF-8 without NUL"}
	}
	if a.Reason == "" || len(a.Reason) > MaxReasonBytes || !storable(a.Reason) {
		return &InvalidError{Field: "reason", Value: clip(a.Reason), Bound: "1 to 1000 bytes of UTF-8 without NUL"}
	}
	return nil
}

// Operator is what people do by hand. Each act is one statement guarded by the status it
// needs, and leaves a row in the table audit. Refusals are *StatusError, ErrNotFound,
// *LeaseLostError, ErrBusy or *InvalidError.
type Operator interface {
	// Retry takes a Stuck, Dead or Cancelled job back to Pending, due now: token and attempt
	// go on, crashes become 0, max_attempts becomes the attempt plus the original maximum, a
	// requested cancel is forgotten. A Completed job never goes back.
	Retry(ctx context.Context, id ID, act Act) error
	// Cancel ends a Pending or Stuck job at once by taking and closing its lease (answer
	// Cancelled; token + 1, attempt unchanged). For a Processing job it sets a request that
	// reaches the holder with its next renewal (answer Processing); asking twice is no error.
	Cancel(ctx context.Context, id ID, act Act) (Status, error)
	// Release takes a lease from its holder: Processing to Pending, attempt given back,
	// fenced by the token. The holder learns of it at its next renewal. Cancelled, if a
	// cancel is requested.
	Release(ctx context.Context, ref Ref, act Act) (Status, error)
	// Resolve takes and closes a vacant or parked lease in one statement, fenced by the
	// token it had: Pending or Stuck to Completed or Dead, with outcome Resolved, token + 1,
	// attempt unchanged. Of two that try, one wins.
	Resolve(ctx context.Context, ref Ref, res Resolution, act Act) error
	// SetQueue stores a queue's own settings. They count for jobs enqueued from then on.
	SetQueue(ctx context.Context, queue string, s QueueSettings, act Act) error
	// Prune deletes finished jobs of one status that ended long enough ago, with their
	// attempts, steps, effects and reports, and expired keys; never a job with a lease, nor one
	// with an open effect. At most Limit jobs; it returns how many. Keys of pruned jobs keep
	// their own life.
	Prune(ctx context.Context, req PruneRequest) (int, error)
}

// Resolution is how a vacant or parked lease is closed by hand.
type Resolution struct {
	Status Status          // Completed or Dead
	Output json.RawMessage // what was found out; JSON or empty
	Error  string          // what went wrong, if Dead
}

// Validate checks a resolution.
func (r Resolution) Validate() error {
	if r.Status != Completed && r.Status != Dead {
		return &InvalidError{Field: "resolution", Value: clip(string(r.Status)), Bound: "Completed or Dead"}
	}
	return nil
}

// PruneRequest bounds one deletion.
type PruneRequest struct {
	Status    Status        // Completed, Dead or Cancelled
	OlderThan time.Duration // since it finished; 0 = any that is finished
	Limit     int           // 1 to MaxBatch
}

// Validate checks a prune request.
func (r PruneRequest) Validate() error {
	switch {
	case !r.Status.Finished():
		return &InvalidError{Field: "status", Value: clip(string(r.Status)), Bound: "Completed, Dead or Cancelled: unfinished jobs are never pruned"}
	case r.OlderThan < 0:
		return &InvalidError{Field: "older than", Value: r.OlderThan.String(), Bound: "0 or more"}
	case r.Limit < 1 || r.Limit > MaxBatch:
		return &InvalidError{Field: "limit", Value: strconv.Itoa(r.Limit), Bound: "1 to 10000"}
	}
	return nil
}
